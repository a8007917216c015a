"""What a participant may set about training, and what follows from it in a season.

Names are trl's (GRPOConfig) where it has one.
"""

from dataclasses import dataclass

from node_client.errors import SettingsError
from node_client.settings.choices import (
    CurriculumKind,
    ExternalPool,
    ExternalShaping,
    Importance,
    ImportanceSamplingLevel,
    LossType,
    OptimizerKind,
    Precision,
    Resampling,
    ScaleRewards,
    SequenceImportance,
    StageSwitch,
)
from node_client.settings.ranges import (
    Candidates,
    Count,
    GroupSize,
    Mix,
    Natural,
    NotNegative,
    PolicyLossName,
    Positive,
    RewardName,
    SamplingName,
    Share,
)
from swarm_protocol.messages import Arm, SeasonInfo

# Pretrained models take trl's rate; models made from nothing on the spot need a far higher one.
PRETRAINED_LEARNING_RATE = 1e-6
# Adapters bear, and need, about ten times as much (trl's guide to LoRA).
LORA_LEARNING_RATE = 1e-5
DEMO_LEARNING_RATE = 1e-4
DEMO_PARAMETERS = 10_000_000

# Rollouts of others that a step asks for where nothing else is said.
CANDIDATES = 24


@dataclass(frozen=True)
class TrainConfig:
    """How to train. None means: as the season says. The docstring under a field is its help."""

    arm: Arm = "swarm"
    """`swarm` mixes in rollouts of other nodes; `isolated` trains on as many, all its own."""

    num_generations: GroupSize | None = None
    """L: completions for each question."""

    local: Natural | None = None
    """I: own rollouts in each training set."""

    external: Natural | None = None
    """J: rollouts of other nodes in each training set."""

    mix: Mix = "season"
    """`season` takes the season's I and J, `4/4` sets both, and `auto` moves them to where rollouts
    teach more; `--local` and `--external` set one each."""

    batch: Count | None = None
    """Rollouts generated in each step; none is the season's, or I + J where it says nothing."""

    external_candidates: Candidates | None = None
    """How many rollouts of others each step asks for: many teach nothing. None is 24, or J if that
    is more."""

    external_pool: ExternalPool = "informative"
    """Which rollouts of others the coordinator offers, where the season allows it: first those that
    their senders declared `informative`, all alike (`uniform`, SAPO), all owners alike (`by-node`),
    all datasets alike (`by-task`), or likelier young ones (`fresh`)."""

    external_sampling: SamplingName = "uniform"
    """How the external places are filled of the usable candidates: `uniform` (SAPO), or likelier
    with rollouts in which few completions are right (`advantage`), and others; all but `uniform`
    score all candidates."""

    keep_uninformative: bool = False
    """Use external rollouts too whose rewards are all equal; they teach nothing, but fill up."""

    datasets: tuple[str, ...] = ()
    """Datasets of the season that this node asks itself, such as its speciality; none is all."""

    curriculum: CurriculumKind = "season"
    """`staged` asks mathematics first and code later (SRPO); `ladder` raises and lowers the
    difficulty by what is solved; `staged+ladder` does both."""

    stage_switch: StageSwitch = "plateau"
    """What ends the first stage of `staged`: a plateau of the training reward, a judge round, or
    the next season."""

    stage_rounds: Count = 10
    """Judge rounds until the second stage, where `stage_switch` is `round`."""

    resampling: Resampling = "none"
    """`history` asks unsolved questions again and drops those that all completions solved (SRPO);
    `dynamic` generates until enough own rollouts are informative (DAPO)."""

    history_epoch: Count = 256
    """Questions in an epoch of `history`."""

    dynamic_batches: Count = 3
    """Batches that `dynamic` generates in a step at most."""

    eval_tasks: Natural = 0
    """Held-out questions that the policy is asked before the first step and then again and again,
    as the judge asks; 0 asks none."""

    eval_every: Count = 50
    """Steps between two evaluations on the held-out questions."""

    eval_samples: Count = 1
    """Answers to each held-out question; with more than 1 they are sampled, and their mean counts
    (SRPO takes 32)."""

    eval_temperature: Positive = 1.0
    """Of those answers; a single one is given at the season's."""

    max_completion_length: Count | None = None
    """Tokens; none is the judge's limit."""

    temperature: Positive = 1.0
    """Of sampling; log-probs are taken at the same temperature."""

    top_p: Share = 1.0
    """Nucleus sampling: the likeliest tokens that hold this share of the probability."""

    reward: RewardName = "binary"
    """`binary` is 1 for solved and 0 otherwise; `partial` is the verifier's partial credit;
    `format` adds a little for the form; `generative` asks the policy itself."""

    scale_rewards: ScaleRewards = "group"
    """Divide advantages by the deviation of the `group`, or of the `batch`, or (`none`) do not."""

    loss_type: LossType = "dapo"
    """What the loss is a mean over: `dapo` (or `bnpo`) all tokens, `grpo` each completion's tokens
    and then completions, `dr_grpo` completions of a constant length."""

    policy_loss: PolicyLossName = "clipped"
    """What is computed of ratios and advantages: the `clipped` policy gradient, or a class of one's
    own as `package.module:Class`."""

    importance_sampling_level: ImportanceSamplingLevel = "token"
    """Whether each token has a ratio, or all of a completion one (GSPO, with loss_type `grpo`)."""

    beta: NotNegative = 0.0
    """Weight of the KL divergence from the model that the run started with; 0 keeps no copy."""

    importance: Importance = "own"
    """What the ratio is divided by: this node's `own` log-probs before the update, the `sender`'s
    for external rollouts that came with them, or nothing (`none`: a plain policy gradient)."""

    sequence_importance: SequenceImportance = "truncate"
    """With importance `sender`, where only a whole completion's log-prob can be compared:
    `truncate` its weight at importance_cap, or drop (`mask`) what lies outside of it."""

    importance_cap: Positive = 3.0
    """The most that a ratio against a sender's log-probs counts: they may be wrong, or lies."""

    external_shaping: ExternalShaping = "luffy"
    """How external text counts that no sender's log-prob corrects: `luffy` lets it count most where
    the policy finds it unlikely but not impossible, `none` as if it were this node's own."""

    shared_rollouts: Count | None = None
    """How many own rollouts of a step are shared at most; none is all, as in SAPO."""

    sharing: SamplingName = "uniform"
    """Which ones, where not all are: the names are those of `external_sampling`."""

    share_logprobs: bool = True
    """Send log-probs with own rollouts, two bytes a token, for nodes that correct by them."""

    mask_truncated_completions: bool = False
    """Leave completions that ran into the length limit out of the loss (DAPO)."""

    learning_rate: NotNegative | None = None
    """AdamW's rate; none is 1e-6 as in trl, 1e-5 for adapters, or 1e-4 for models of less than 10 M
    parameters."""

    epsilon: Share = 0.2
    """How far below 1 the clip lets the ratio fall."""

    epsilon_high: NotNegative = 0.28
    """How far above 1 the clip lets the ratio rise (clip-higher, DAPO)."""

    delta: Positive | None = None
    """The most that a ratio counts where the clip leaves it free (two-sided clip); none: no end."""

    num_iterations: Count = 1
    """Passes over each training set; from the second on the clip acts."""

    max_grad_norm: Positive = 1.0
    """Gradients are scaled down to this norm."""

    micro_batch_tokens: Count = 4096
    """Tokens with padding, a shared prompt counted once, that go through the model at once in an
    update."""

    precision: Precision = "auto"
    """`bf16` multiplies in bfloat16, with float32 updates; `auto` does where that is faster. `fp16`
    is for GPUs without bfloat16."""

    gradient_checkpointing: bool = False
    """Compute activations again in the backward pass: less memory, about a third slower."""

    optimizer: OptimizerKind = "adamw"
    """`adamw_8bit` keeps AdamW's states in 8 bits (bitsandbytes): 6 bytes a parameter less."""

    lora_r: Natural = 0
    """Train adapters of this rank beside the weights (LoRA, needs peft); 0 trains all weights."""

    lora_alpha: Count = 32
    """Adapters count `lora_alpha / lora_r` times."""

    lora_target_modules: tuple[str, ...] = ()
    """Names of the layers that get adapters, such as q_proj,v_proj; none is all linear ones."""

    save_total_limit: Count = 2
    """How many of the newest checkpoints are kept; the best one stays besides."""


@dataclass(frozen=True)
class StepPlan:
    """The sizes of one step: rollouts of each kind, L, and tokens for each completion."""

    local: int
    external: int
    batch: int
    completions: int
    max_completion_length: int

    @property
    def size(self) -> int:
        """I + J, the rollouts of a training set."""
        return self.local + self.external


def plan_step(config: TrainConfig, season: SeasonInfo) -> StepPlan:
    """Settle the sizes of a step. Raises SettingsError when they cannot work."""
    if config.arm == "base":
        raise SettingsError(
            "A base node never trains.", fix="Choose --arm swarm or --arm isolated to train."
        )
    local, external = _wished_mix(config, season)
    size = local + external
    # A participant who wants more own rollouts than the season generates has to generate them.
    batch = config.batch or max(season.batch or size, local)
    if config.arm == "isolated":
        local, external = min(size, batch), 0
    plan = StepPlan(
        local=local,
        external=external,
        batch=batch,
        completions=config.num_generations or season.completions,
        max_completion_length=config.max_completion_length or season.max_new_tokens,
    )
    _check(plan)
    return plan


def _wished_mix(config: TrainConfig, season: SeasonInfo) -> tuple[int, int]:
    """Return I and J as the participant wants them. Raises SettingsError for two wishes at once."""
    if "/" in config.mix:
        if config.local is not None or config.external is not None:
            raise SettingsError(
                f"The mix {config.mix} says how many rollouts are local and external,"
                " and so do --local and --external.",
                fix="Leave one of them out.",
            )
        local, external = config.mix.split("/")
        return int(local), int(external)
    return (
        season.local if config.local is None else config.local,
        season.external if config.external is None else config.external,
    )


def learning_rate_for(config: TrainConfig, *, parameters: int) -> float:
    """Return the learning rate for a model with so many parameters."""
    if config.learning_rate is not None:
        return config.learning_rate
    if parameters < DEMO_PARAMETERS:
        return DEMO_LEARNING_RATE
    return LORA_LEARNING_RATE if config.lora_r else PRETRAINED_LEARNING_RATE


def _check(plan: StepPlan) -> None:
    if min(plan.local, plan.external) < 0 or plan.local + plan.external < 1:
        raise SettingsError(
            f"A training set of {plan.local} local and {plan.external} external rollouts is empty.",
            fix="Set --local or --external to 1 or more.",
        )
    if plan.batch < max(plan.local, 1):
        raise SettingsError(
            f"{plan.batch} rollouts a step are fewer than the {plan.local} local ones trained on.",
            fix="Leave the batch out, or set it to at least the local ones.",
        )
    if plan.completions < 2:
        raise SettingsError(
            "One completion for each question cannot be compared with others of its group.",
            fix="Set --num-generations to 2 or more.",
        )
