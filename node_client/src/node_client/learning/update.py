"""One update of the policy on one training set."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import isfinite
from typing import TypeVar

import torch
from torch import Tensor, nn

from node_client.errors import MemoryExhaustedError
from node_client.learning.adamw import HalvesAdamW
from node_client.learning.importance import denominators
from node_client.learning.losses import Loss, Objective, Tokens, make_policy_loss
from node_client.learning.micro_batches import split_rows
from node_client.learning.rollouts import TrainingGroup
from node_client.learning.rows import Row, make_rows
from node_client.learning.states import whole_states
from node_client.learning.stopwatch import Stopwatch
from node_client.learning.team import Team
from node_client.model.memory.budget import release_memory
from node_client.model.policy import Policy
from node_client.settings.train_config import TrainConfig

ResultT = TypeVar("ResultT")


@dataclass(frozen=True)
class UpdateReport:
    """What an update did; `clip_ratio` is the share of tokens whose gradient was clipped away.

    `kl` is the mean over trained tokens of the divergence from the reference, 0 without one.
    """

    loss: float
    grad_norm: float
    clip_ratio: float
    kl: float = 0.0

    @property
    def is_finite(self) -> bool:
        """Whether loss and gradient are numbers; where they are not, no step was made."""
        return isfinite(self.loss) and isfinite(self.grad_norm)


@dataclass(frozen=True)
class MicroBatch:
    """Rows that go through the model together, with what was known of them before the update.

    `old_logprobs` (B, T) are None where one pass is made: the pass's own values, detached, are
    the same at half the cost. `reference_logprobs` (B, T) are None without a KL term.
    """

    rows: list[Row]
    old_logprobs: Tensor | None
    reference_logprobs: Tensor | None


def update_policy(
    groups: Sequence[TrainingGroup],
    *,
    policy: Policy,
    optimizer: torch.optim.Optimizer,
    scaler: torch.amp.GradScaler,
    config: TrainConfig,
    max_completion_length: int,
    watch: Stopwatch,
    team: Team,
) -> UpdateReport:
    """Make `num_iterations` optimizer steps on the groups and report on the last one.

    Rows without advantage count in the loss's mean, but without a KL term they have no gradient and
    are not run. If no row has any, the policy stays as it is. Each process of a team runs its share
    of the rows and makes the same step; the report is of all rows.

    When memory runs out, also at the optimizer's first allocation, micro-batches are halved and the
    update begins anew, in all processes of a team. Raises MemoryExhaustedError when that does not
    help.
    """
    rows = make_rows(groups, config=config, max_completion_length=max_completion_length)
    token_count = sum(len(row.completion) for row in rows)
    moving = [row for row in rows if row.advantage or config.beta]
    if not moving:
        return UpdateReport(loss=0.0, grad_norm=0.0, clip_ratio=0.0)
    mine = team.share_rows(moving)
    while not (
        done := _step(
            mine,
            policy=policy,
            optimizer=optimizer,
            scaler=scaler,
            config=config,
            watch=watch,
            team=team,
        )
    ):
        release_memory(policy.device)
    losses, norm = done
    loss, clipped, kl = team.add_up(
        [
            sum(loss.value.item() for loss in losses),
            sum(loss.clip_low + loss.clip_high for loss in losses),
            sum(loss.kl for loss in losses),
        ]
    )
    return UpdateReport(
        loss=loss, grad_norm=norm, clip_ratio=clipped / token_count, kl=kl / token_count
    )


def _step(
    rows: Sequence[Row],
    *,
    policy: Policy,
    optimizer: torch.optim.Optimizer,
    scaler: torch.amp.GradScaler,
    config: TrainConfig,
    watch: Stopwatch,
    team: Team,
) -> tuple[list[Loss], float] | None:
    """Make the optimizer steps; return the last one's losses and gradient norm.

    When memory runs out in the first pass, nothing is returned, and all processes can begin anew.
    After it the passes that are left are left out: those before have changed the policy, and to
    begin anew would make them twice.
    """

    def attempt(work: Callable[[], ResultT]) -> ResultT | None:
        return _attempt(work, policy=policy, optimizer=optimizer, team=team)

    batches = attempt(partial(_prepare_all, rows, policy=policy, config=config, watch=watch))
    if batches is None:
        return None
    choose_gradients(policy.trainable(), summed=len(batches) > 1 or team.size > 1)
    done: tuple[list[Loss], float] | None = None
    for _ in range(config.num_iterations):
        losses = attempt(
            partial(
                _accumulate_all, batches, policy=policy, scaler=scaler, config=config, watch=watch
            )
        )
        if losses is None:
            break
        with watch.measure("optimizer"):
            team.add_up_gradients(policy.trainable())
            norm = attempt(
                partial(descend, policy, optimizer, scaler, max_norm=config.max_grad_norm)
            )
        if norm is None:
            _check_equal(team)
            break
        done = losses, norm
    return done


def _attempt(
    work: Callable[[], ResultT], *, policy: Policy, optimizer: torch.optim.Optimizer, team: Team
) -> ResultT | None:
    """Return what `work` returns, or None, in all processes, when memory ran out in one.

    All go on with the smallest room. Raises MemoryExhaustedError when one has none left.
    """
    room, before = policy.room, policy.room.share
    result = None
    try:
        result = work()
    except (RuntimeError, MemoryError) as problem:
        room.shrink(problem)
    room.lower(team.least(room.share))
    room.check()
    if room.share == before:
        return result
    optimizer.zero_grad(set_to_none=True)
    return None


def _check_equal(team: Team) -> None:
    """Check, after an optimizer that lacked memory, that no process of a team is ahead of others.

    Raises MemoryExhaustedError.
    """
    if team.size > 1:
        raise MemoryExhaustedError(
            "Memory ran out in the optimizer of one of this node's processes, and the others may "
            "have made their step.",
            fix="Resume with the optimizer adamw_8bit, or begin anew (--fresh) with adapters "
            "instead of all weights (lora_r = 16) or with a smaller model.",
        )


def _prepare_all(
    rows: Sequence[Row], *, policy: Policy, config: TrainConfig, watch: Stopwatch
) -> list[MicroBatch]:
    """Split rows into micro-batches that fit, and prepare each."""
    split = split_rows(
        rows,
        limit=policy.room.fit(config.micro_batch_tokens),
        shared_prompts=policy.shares_prompts,
    )
    return [prepare(batch, policy=policy, config=config, watch=watch) for batch in split]


def _accumulate_all(
    batches: Sequence[MicroBatch],
    *,
    policy: Policy,
    scaler: torch.amp.GradScaler,
    config: TrainConfig,
    watch: Stopwatch,
) -> list[Loss]:
    """Add the gradients of all micro-batches to the parameters'."""
    return [
        accumulate(batch, policy=policy, scaler=scaler, config=config, watch=watch)
        for batch in batches
    ]


def choose_gradients(parameters: Sequence[nn.Parameter], *, summed: bool) -> None:
    """Let gradients that are summed up be float32, others of their weights' type.

    In bfloat16 a sum of many micro-batches would lose the small ones.
    """
    for parameter in parameters:
        parameter.grad_dtype = torch.float32 if summed else parameter.dtype


def descend(
    policy: Policy,
    optimizer: torch.optim.Optimizer,
    scaler: torch.amp.GradScaler,
    *,
    max_norm: float,
) -> float:
    """Make one optimizer step with clipped gradients, and return their norm before.

    Where that is not finite no step is made: one such gradient would spoil every weight.
    """
    scaler.unscale_(optimizer)
    try:
        if isinstance(optimizer, HalvesAdamW):
            norm = optimizer.clip(max_norm)
        else:
            norm = torch.nn.utils.clip_grad_norm_(policy.trainable(), max_norm)
        if norm.isfinite():
            with whole_states(optimizer):
                scaler.step(optimizer)
    finally:
        scaler.update()  # also when memory ran out: it must know that this step is over
    optimizer.zero_grad(set_to_none=True)
    return norm.item()


@torch.no_grad()
def prepare(
    rows: list[Row], *, policy: Policy, config: TrainConfig, watch: Stopwatch
) -> MicroBatch:
    """Take the log-probs that the update needs of the policy before it, and of the reference."""
    old = reference = None
    with watch.measure("forward"):
        if config.num_iterations > 1:
            old = _run(rows, policy=policy, config=config)[0]
        if config.beta:
            reference = policy.reference_logprobs(
                [row.prompt for row in rows],
                [row.completion for row in rows],
                temperature=config.temperature,
            )
    return MicroBatch(rows, old_logprobs=old, reference_logprobs=reference)


def accumulate(
    batch: MicroBatch,
    *,
    policy: Policy,
    scaler: torch.amp.GradScaler,
    config: TrainConfig,
    watch: Stopwatch,
) -> Loss:
    """Add the gradient of one micro-batch to the parameters'."""
    with watch.measure("forward"):
        logprobs, mask = _run(batch.rows, policy=policy, config=config)
        before = logprobs.detach() if batch.old_logprobs is None else batch.old_logprobs
        old, correction = denominators(batch.rows, before=before, config=config)
        tokens = Tokens(
            logprobs=logprobs,
            old_logprobs=old,
            mask=mask,
            advantages=logprobs.new_tensor([row.advantage for row in batch.rows]),
            weights=logprobs.new_tensor([row.weight for row in batch.rows]),
            reference_logprobs=batch.reference_logprobs,
            correction=correction,
        )
        loss = make_policy_loss(config.policy_loss).compute(tokens, objective=objective_of(config))
    with watch.measure("backward"):
        scaler.scale(loss.value).backward()  # type: ignore[no-untyped-call]
    return loss


def objective_of(config: TrainConfig) -> Objective:
    """Return what the settings say of the loss."""
    return Objective(
        epsilon=config.epsilon,
        epsilon_high=config.epsilon_high,
        delta=config.delta,
        beta=config.beta,
        level=config.importance_sampling_level,
    )


def _run(rows: Sequence[Row], *, policy: Policy, config: TrainConfig) -> tuple[Tensor, Tensor]:
    return policy.logprobs(
        [row.prompt for row in rows],
        [row.completion for row in rows],
        # The distribution that was sampled from is the one whose likelihood is changed.
        temperature=config.temperature,
    )
