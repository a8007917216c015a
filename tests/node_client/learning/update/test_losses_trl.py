"""Losses, gradients and advantages compared with trl's own code, on the same model and tokens.

How trl 1.16 normalises (`GRPOTrainer._compute_loss`), which is the reference here:

- `dapo` divides by `num_items_in_batch`, the completion tokens of the whole generation batch, so
  micro-batches add up to one token mean.
- `grpo` and `dr_grpo` take a mean over the rows of a micro-batch and divide by the number of
  micro-batches, which is a mean over all rows where micro-batches have equally many.
- `bnpo` takes the token mean of each micro-batch and divides by their number. That depends on how
  the batch is split, so it is compared unsplit; ours does not depend on it.
- Truncated rows that are masked lose their tokens but count as rows.
- The KL term is multiplied by the ratio before it is bounded (`use_bias_correction_kl`).
"""

import gc
import itertools
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest
import torch
from torch import Tensor

from node_client.learning.rollouts import SenderLogprobs, TrainingGroup
from node_client.learning.timing import StepTimer
from node_client.learning.update.losses import group_advantages
from node_client.learning.update.rows import make_rows, split_rows
from node_client.learning.update.updater import Updater
from node_client.model.padding import pad_left, pad_right
from node_client.model.policy import Policy
from node_client.settings.choices import (
    ImportanceSamplingLevel,
    LossType,
    ScaleRewards,
    SequenceImportance,
)
from node_client.settings.train_config import TrainConfig
from tests.node_client.fakes import toy_policy

LONGEST = 8
TEMPERATURE = 0.8
EOS = 1
# Two micro-batches of two rows each are given to trl in tests with accumulation.
GROUPS = [
    TrainingGroup(
        prompt=[5, 6, 7],
        completions=[[8, 9, 11, 4, 12, EOS], [10, 7, 11, 12, 13, 14, 15, 16]],
        rewards=[1.0, 0.25],
        truncated=[False, True],
    ),
    TrainingGroup(
        prompt=[20],
        completions=[[16, EOS], [19, 22, 30, 31, EOS]],
        rewards=[0.0, 1.0],
        truncated=[False, False],
    ),
]
REWARDS = [[1.0, 0.0, 0.0, 0.5], [0.0, 0.0, 0.0, 0.0], [1.0, 1.0, 0.0, 1.0]]
CASES = [
    (loss_type, level, delta, beta, masked, steps)
    for loss_type, level, delta, beta, masked, steps in itertools.product(
        get_args(LossType),
        get_args(ImportanceSamplingLevel),
        [None, 1.04],
        [0.0, 0.05],
        [0, 1],
        [1, 2],
    )
    if not (loss_type == "bnpo" and steps == 2)
]


# Importing trl takes seconds; it and its libraries deprecate each other's names.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::FutureWarning")]


@pytest.fixture(scope="module")
def trl_trainer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return trl's trainer of a toy model; importing it takes seconds, so all tests share it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer = make_trl_trainer(tmp_path_factory.mktemp("trl"))
    gc.freeze()  # trl's modules too, like all others after test collection
    return trainer


def make_trl_trainer(folder: Path) -> Any:
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    policy = toy_policy()
    prompts = [f"prompt {number}" for number in range(len(REWARDS))]
    trainer = GRPOTrainer(
        model=policy._model,
        processing_class=policy._tokenizer.tokenizer,
        reward_funcs=lambda completions, **_: list(itertools.chain(*REWARDS)),
        train_dataset=Dataset.from_dict({"prompt": prompts}),
        args=GRPOConfig(
            output_dir=str(folder),
            use_cpu=True,
            bf16=False,
            per_device_train_batch_size=len(REWARDS) * len(REWARDS[0]),
            num_generations=len(REWARDS[0]),
            max_completion_length=LONGEST,
            temperature=TEMPERATURE,
        ),
    )
    trainer.model.train()
    return trainer


class Policies:
    """One policy at three times: at the start of a run, before an update, and during it."""

    def __init__(self) -> None:
        self.policy = toy_policy()
        self._disturb(seed=1)
        self.policy.keep_reference()
        self._disturb(seed=2)
        self.before = toy_policy()
        self.before._model.load_state_dict(self.policy._model.state_dict())
        self.before._reference = self.policy._reference
        prompts = [group.prompt for group in GROUPS for _ in group.completions]
        completions = [completion for group in GROUPS for completion in group.completions]
        with torch.no_grad():
            self.old, _ = self.before.logprobs(prompts, completions, temperature=TEMPERATURE)
        self.reference = self.before.reference_logprobs(
            prompts, completions, temperature=TEMPERATURE
        )
        self._disturb(seed=3)

    @torch.no_grad()
    def _disturb(self, *, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        for parameter in self.policy.trainable():
            parameter.add_(0.05 * torch.randn(parameter.shape, generator=generator))


@pytest.fixture(scope="module")
def policies() -> Policies:
    return Policies()


def our_gradients(
    policies: Policies, config: TrainConfig, *, groups: list[TrainingGroup] = GROUPS
) -> tuple[float, float, list[Tensor]]:
    """Return loss, clipped tokens and gradient of one pass over the groups."""
    timer = StepTimer(lambda: 0.0)
    rows = make_rows(groups, config=replace(config, max_completion_length=LONGEST))
    policy = policies.policy
    policy._model.zero_grad(set_to_none=True)
    updater = Updater(policy, config, optimizer=torch.optim.SGD(policy.trainable()))
    # With several passes, the log-probs before the update are stored.
    before = Updater(
        policies.before,
        replace(config, num_iterations=2),
        optimizer=torch.optim.SGD(policies.before.trainable()),
    )
    losses = [
        updater.accumulate(before.prepare(batch, timer=timer), timer=timer)
        for batch in split_rows(
            rows, limit=config.micro_batch_tokens, shared_prompts=policy.shares_prompts
        )
    ]
    clipped = sum(loss.clip_low + loss.clip_high for loss in losses)
    return sum(loss.value.item() for loss in losses), clipped, gradients_of(policy)


def gradients_of(policy: Policy) -> list[Tensor]:
    return [p.grad.clone() for p in policy.trainable() if p.grad is not None]


def trl_gradients(
    trainer: Any, policies: Policies, config: TrainConfig, *, steps: int, **more: Tensor
) -> tuple[float, list[Tensor]]:
    """Return trl's loss and gradient of the same pass in `steps` accumulated micro-batches."""
    trainer.loss_type = config.loss_type
    trainer.importance_sampling_level = config.importance_sampling_level
    trainer.epsilon_low, trainer.epsilon_high = config.epsilon, config.epsilon_high
    trainer.beta, trainer.args.delta = config.beta, config.delta
    trainer.current_gradient_accumulation_steps = trainer.args.steps_per_generation = steps
    trainer.model.load_state_dict(policies.policy._model.state_dict())
    trainer.model.zero_grad(set_to_none=True)
    inputs = trl_inputs(policies, config) | more
    total = 0.0
    rows = len(inputs["advantages"])
    for start in range(0, rows, rows // steps):
        part = {
            name: values if values.dim() == 0 else values[start : start + rows // steps]
            for name, values in inputs.items()
        }
        loss = trainer._compute_loss(trainer.model, part)
        loss.backward()
        total += loss.item()
    return total, [p.grad.clone() for p in trainer.model.parameters() if p.grad is not None]


def trl_inputs(policies: Policies, config: TrainConfig) -> dict[str, Tensor]:
    """Return the groups in the form that `_generate_and_score_completions` returns."""
    prompts = [group.prompt for group in GROUPS for _ in group.completions]
    completions = [completion for group in GROUPS for completion in group.completions]
    truncated = torch.tensor([cut for group in GROUPS for cut in group.truncated])
    advantages = group_advantages(
        [group.rewards for group in GROUPS], scale_rewards=config.scale_rewards
    )
    cpu = torch.device("cpu")
    prompt_ids, prompt_mask = pad_left(prompts, pad=0, device=cpu)
    completion_ids, completion_mask = pad_right(completions, pad=0, device=cpu)
    if config.mask_truncated_completions:
        completion_mask = completion_mask * (~truncated).unsqueeze(1)
    return {
        "prompt_ids": prompt_ids,
        "prompt_mask": prompt_mask,
        "completion_ids": completion_ids,
        "completion_mask": completion_mask,
        "advantages": torch.tensor(advantages, dtype=torch.float32).flatten(),
        "old_per_token_logps": policies.old,
        "ref_per_token_logps": policies.reference,
        "num_items_in_batch": completion_mask.sum(),
    }


@pytest.mark.parametrize(("loss_type", "level", "delta", "beta", "masked", "steps"), CASES)
def test_loss_and_gradient_equal_those_of_trl(
    trl_trainer: Any,
    policies: Policies,
    loss_type: LossType,
    level: ImportanceSamplingLevel,
    delta: float | None,
    beta: float,
    masked: int,
    steps: int,
) -> None:
    config = TrainConfig(
        loss_type=loss_type,
        importance_sampling_level=level,
        # So narrow that the clip and delta act on both sides, at both levels.
        epsilon=0.02,
        epsilon_high=0.03,
        delta=delta,
        beta=beta,
        mask_truncated_completions=bool(masked),
        temperature=TEMPERATURE,
        micro_batch_tokens=4096 if steps == 1 else 16,
    )
    loss, clipped, gradients = our_gradients(policies, config)
    expected, expected_gradients = trl_gradients(trl_trainer, policies, config, steps=steps)
    assert clipped > 0
    assert loss == pytest.approx(expected, abs=1e-5)
    for gradient, other in zip(gradients, expected_gradients, strict=True):
        assert torch.allclose(gradient, other, atol=1e-5)


@pytest.mark.parametrize("kind", get_args(SequenceImportance))
def test_rows_of_another_sampler_are_weighted_as_in_trl(
    trl_trainer: Any,
    policies: Policies,
    monkeypatch: pytest.MonkeyPatch,
    kind: SequenceImportance,
) -> None:
    config = TrainConfig(
        loss_type="grpo",
        importance="sender",
        sequence_importance=kind,
        importance_cap=2.0,
        temperature=TEMPERATURE,
    )
    # Of the four rows, one is much likelier here than at the sender, one much less, two slightly.
    old = trl_inputs(policies, config)["old_per_token_logps"]
    mask = trl_inputs(policies, config)["completion_mask"]
    differences = torch.tensor([2.0, -2.0, 0.5, -0.5])
    totals = ((old * mask).sum(dim=1) - differences).tolist()
    claims = [SenderLogprobs(total) for total in totals]
    groups = [
        replace(group, external=True, sender_logprobs=claims[2 * place : 2 * place + 2])
        for place, group in enumerate(GROUPS)
    ]
    # trl's sequence_truncate and sequence_mask in `_generate_and_score_completions`
    weights = differences.exp().unsqueeze(1)
    if kind == "truncate":
        weights = weights.clamp(max=2.0)
    else:
        weights = weights.masked_fill((weights < 0.5) | (weights > 2.0), 0.0)
    monkeypatch.setattr(trl_trainer, "use_vllm", True)
    monkeypatch.setattr(trl_trainer, "vllm_importance_sampling_correction", True)
    loss, _, gradients = our_gradients(policies, config, groups=groups)
    expected, expected_gradients = trl_gradients(
        trl_trainer, policies, config, steps=1, importance_sampling_ratio=weights
    )
    assert loss == pytest.approx(expected, abs=1e-5)
    for gradient, other in zip(gradients, expected_gradients, strict=True):
        assert torch.allclose(gradient, other, atol=1e-5)


@pytest.mark.parametrize("scale_rewards", get_args(ScaleRewards))
def test_advantages_equal_those_of_trl(trl_trainer: Any, scale_rewards: ScaleRewards) -> None:
    trl_trainer.scale_rewards = scale_rewards
    trl_trainer.beta = 0.0
    samples = [{"prompt": f"prompt {n}"} for n, group in enumerate(REWARDS) for _ in group]
    expected = trl_trainer._generate_and_score_completions(samples)["advantages"]
    advantages = group_advantages(REWARDS, scale_rewards=scale_rewards)
    flat = list(itertools.chain(*advantages))
    assert flat == pytest.approx(expected.tolist(), abs=1e-5)
