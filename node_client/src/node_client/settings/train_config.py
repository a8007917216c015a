"""The settings of training, and the sizes of a step that follow from them in a season.

Settings that trl has too (GRPOConfig) have trl's names.
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

# Pretrained models use trl's rate; demo models need a far higher one.
PRETRAINED_LEARNING_RATE = 1e-6
# Adapters need a rate about ten times as high (trl's guide to LoRA).
LORA_LEARNING_RATE = 1e-5
DEMO_LEARNING_RATE = 1e-4
DEMO_PARAMETERS = 10_000_000

# Default number of external rollouts requested in a step.
CANDIDATES = 24


@dataclass(frozen=True)
class TrainConfig:
    """The settings of training. The string under each field is its help text.

    If a field is None, the season's value is used, unless the help text says otherwise.
    """

    arm: Arm = "swarm"
    """`swarm` trains on rollouts of other nodes too; `isolated` on its own only."""

    num_generations: GroupSize | None = None
    """L: completions for each question."""

    local: Natural | None = None
    """I: own rollouts in each training set."""

    external: Natural | None = None
    """J: rollouts of other nodes in each training set."""

    mix: Mix = "season"
    """`season` uses the season's I and J, `4/4` sets both, and `auto` moves places to the kind of
    rollouts that teaches more; `--local` and `--external` set one each."""

    batch: Count | None = None
    """Rollouts generated in each step; none is the season's number or I, whichever is larger, or
    I + J if the season has no number."""

    external_candidates: Candidates | None = None
    """External rollouts requested in each step, because many are not informative. None is 24, or J
    if that is more."""

    external_pool: ExternalPool = "informative"
    """How the coordinator draws external rollouts, if the season allows it: those declared
    `informative` by their senders first, `uniform` (SAPO), uniform over nodes (`by-node`) or
    datasets (`by-task`), or with a preference for recent ones (`fresh`)."""

    external_sampling: SamplingName = "uniform"
    """How external rollouts are chosen from the usable candidates: `uniform` (SAPO), with a
    preference for few correct completions (`advantage`), and others; all but `uniform` score all
    candidates."""

    keep_uninformative: bool = False
    """Also use external rollouts whose rewards are all equal. They have no gradient, but fill the
    training set."""

    datasets: tuple[str, ...] = ()
    """Datasets of the season that this node draws its own questions from; none is all."""

    curriculum: CurriculumKind = "season"
    """`staged` asks mathematics first and code later (SRPO); `ladder` adapts the difficulty to the
    share of solved questions; `staged+ladder` does both."""

    stage_switch: StageSwitch = "plateau"
    """End of the first stage of `staged`: a plateau of the training reward, a judge round, or the
    next season."""

    stage_rounds: Count = 10
    """Judge rounds until the second stage, if `stage_switch` is `round`."""

    resampling: Resampling = "none"
    """`history` asks unsolved questions again and drops those that all completions solved (SRPO);
    `dynamic` generates until enough own rollouts are informative (DAPO)."""

    history_epoch: Count = 256
    """Questions in an epoch of `history`."""

    dynamic_batches: Count = 3
    """Maximum number of batches that `dynamic` generates in a step."""

    eval_tasks: Natural = 0
    """Held-out questions for evaluation before the first step and every `eval_every` steps, asked
    as the judge does; 0 for none."""

    eval_every: Count = 50
    """Steps between two evaluations on the held-out questions."""

    eval_samples: Count = 1
    """Answers to each held-out question; more than 1 are sampled, and their mean is the score (SRPO
    uses 32)."""

    eval_temperature: Positive = 1.0
    """Temperature of those answers; a single answer uses the season's."""

    max_completion_length: Count | None = None
    """Maximum tokens of a completion; none is the judge's limit."""

    temperature: Positive = 1.0
    """Sampling temperature; log-probs are computed at the same temperature."""

    top_p: Share = 1.0
    """Nucleus sampling: the most likely tokens with this total probability."""

    reward: RewardName = "binary"
    """`binary` is 1 for solved and 0 otherwise; `partial` is the verifier's partial credit;
    `format` adds a small reward for the format; `generative` asks the policy itself."""

    scale_rewards: ScaleRewards = "group"
    """Divide advantages by the standard deviation of the `group` or the `batch`, or by nothing
    (`none`)."""

    loss_type: LossType = "dapo"
    """How the loss is averaged: `dapo` (or `bnpo`) over all tokens, `grpo` over each completion's
    tokens and then over completions, `dr_grpo` as if all completions had the maximum length."""

    policy_loss: PolicyLossName = "clipped"
    """The loss from ratios and advantages: the `clipped` policy gradient, or your own class as
    `package.module:Class`."""

    importance_sampling_level: ImportanceSamplingLevel = "token"
    """One ratio for each `token`, or one for the whole completion (`sequence`: GSPO, with loss_type
    `grpo`)."""

    beta: NotNegative = 0.0
    """Weight of the KL divergence from the model at the start of the run; 0 keeps no copy of it."""

    importance: Importance = "own"
    """Denominator of the ratio: this node's `own` log-probs before the update, the `sender`'s for
    external rollouts that include them, or none (`none`: a plain policy gradient)."""

    sequence_importance: SequenceImportance = "truncate"
    """With importance `sender`, if only the log-prob of the whole completion can be compared:
    `truncate` its weight at importance_cap, or drop it (`mask`) outside of the cap."""

    importance_cap: Positive = 3.0
    """Maximum ratio against a sender's log-probs, which may be wrong or false."""

    external_shaping: ExternalShaping = "luffy"
    """Weight of external text without a sender's log-probs: `luffy` gives most weight to tokens
    that are unlikely but not impossible for the policy, `none` treats it as this node's own."""

    shared_rollouts: Count | None = None
    """Maximum number of own rollouts shared in a step; none is all, as in SAPO."""

    sharing: SamplingName = "uniform"
    """Which rollouts are shared, if not all: the names are those of `external_sampling`."""

    share_logprobs: bool = True
    """Send log-probs with own rollouts, 2⅔ bytes per token, for nodes that use them as importance
    weights."""

    mask_truncated_completions: bool = False
    """Exclude completions that reached the length limit from the loss (DAPO)."""

    learning_rate: NotNegative | None = None
    """Learning rate of AdamW; none is 1e-6 as in trl, 1e-5 for adapters, or 1e-4 for models with
    fewer than 10 M parameters."""

    epsilon: Share = 0.2
    """Lower clip: the ratio is clipped at 1 - epsilon."""

    epsilon_high: NotNegative = 0.28
    """Upper clip: the ratio is clipped at 1 + epsilon_high (clip-higher, DAPO)."""

    delta: Positive | None = None
    """Maximum ratio where the clip does not apply (two-sided clip); none: no maximum."""

    num_iterations: Count = 1
    """Passes over each training set; the clip has an effect from the second one on."""

    max_grad_norm: Positive = 1.0
    """Maximum norm of gradients; larger ones are scaled down."""

    micro_batch_tokens: Count = 4096
    """Tokens per forward pass in an update, with padding; a shared prompt counts once."""

    precision: Precision = "auto"
    """`bf16` multiplies in bfloat16, with float32 updates; `auto` does so where it is faster.
    `fp16` is for GPUs without bfloat16."""

    gradient_checkpointing: bool = False
    """Recompute activations in the backward pass: less memory, about a third slower."""

    optimizer: OptimizerKind = "adamw"
    """`adamw_8bit` keeps AdamW's states in 8 bits (bitsandbytes), 6 bytes less per parameter."""

    lora_r: Natural = 0
    """Rank of adapters (LoRA, needs peft); 0 trains all weights."""

    lora_alpha: Count = 32
    """Adapters are scaled by `lora_alpha / lora_r`."""

    lora_target_modules: tuple[str, ...] = ()
    """Names of the layers with adapters, such as q_proj,v_proj; none is all linear layers."""

    save_total_limit: Count = 2
    """Number of newest checkpoints to keep; the best one is kept in addition."""


@dataclass(frozen=True)
class StepPlan:
    """The sizes of one step.

    `local` (I) and `external` (J) are the numbers of own and external rollouts in the training set,
    `batch` is the number of rollouts that the node generates, and `completions` (L) the number of
    completions per rollout. `max_completion_length` is in tokens.
    """

    local: int
    external: int
    batch: int
    completions: int
    max_completion_length: int

    @property
    def size(self) -> int:
        """I + J, the number of rollouts in a training set."""
        return self.local + self.external


def plan_step(config: TrainConfig, season: SeasonInfo) -> StepPlan:
    """Return the sizes of a step in a season.

    An isolated node trains only on its own rollouts. Their number is I + J, or the batch if that is
    smaller. Raises SettingsError if the arm is `base`, if the training set would be empty, if the
    batch would be smaller than I, or if L would be below 2. Also raises it if `mix` has the form
    I/J and `local` or `external` is set too.
    """
    if config.arm == "base":
        raise SettingsError(
            "A base node never trains.", fix="Choose --arm swarm or --arm isolated to train."
        )
    local, external = _chosen_mix(config, season)
    size = local + external
    # More own rollouts than the season's batch have to be generated too.
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


def _chosen_mix(config: TrainConfig, season: SeasonInfo) -> tuple[int, int]:
    """Return I and J from the settings, or from the season if the settings leave them open.

    Raises SettingsError if `mix` is I/J and `local` or `external` is set too.
    """
    if "/" in config.mix:
        if config.local is not None or config.external is not None:
            raise SettingsError(
                f"The mix {config.mix} sets the numbers of local and external rollouts,"
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
    """Return the learning rate of the settings, or the default for the model.

    The default depends on the number of parameters and on whether adapters are trained.
    """
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
