"""One update of the policy on one training set: advantages, loss, gradient, optimizer step."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import torch
from torch import Tensor, nn

from node_client.learning.optimizer import (
    HalvesAdamW,
    begin_training,
    dropping_partial_states,
    make_scaler,
    resume_optimizer,
)
from node_client.learning.rollouts import TrainingGroup
from node_client.learning.team import ALONE, Team
from node_client.learning.timing import StepTimer
from node_client.learning.update.losses import Loss, Objective, Tokens, make_policy_loss
from node_client.learning.update.rows import TrainingRow, denominators, make_rows, split_rows
from node_client.learning.update.runner import UpdateRunner
from node_client.model.memory.budget import release_memory
from node_client.model.policy import Policy
from node_client.settings.train_config import TrainConfig


@dataclass(frozen=True)
class UpdateReport:
    """The result of an update: figures of its last optimizer step.

    `grad_norm` is the norm of the gradients before `max_grad_norm` is applied. Two figures cover
    the tokens that count in the loss: `clip_ratio` is the share of tokens with a policy gradient of
    zero because their importance ratio was clipped, and `kl` is the mean divergence from the
    reference model, 0 without one.
    """

    loss: float
    grad_norm: float
    clip_ratio: float
    kl: float = 0.0

    @property
    def is_finite(self) -> bool:
        """Whether the loss and the gradient norm of the last step are finite.

        If the norm is not finite, that step was skipped.
        """
        return isfinite(self.loss) and isfinite(self.grad_norm)


@dataclass(frozen=True)
class MicroBatch:
    """Rows that go through the model together, with their log-probs from before the update.

    `old_logprobs` (B, T) are None if the update has a single iteration, which uses the log-probs of
    its own forward pass instead. `reference_logprobs` (B, T) are None without a KL term.
    """

    rows: list[TrainingRow]
    old_logprobs: Tensor | None
    reference_logprobs: Tensor | None


class Updater:
    """Updates one policy, with an optimizer, a loss function and a loss scaler for float16.

    Creating it prepares the policy for training (`begin_training`), unless an optimizer is given.
    """

    def __init__(
        self,
        policy: Policy,
        config: TrainConfig,
        *,
        team: Team = ALONE,
        optimizer: torch.optim.Optimizer | None = None,
    ) -> None:
        self.policy = policy
        self.config = config
        self.optimizer = begin_training(policy, config) if optimizer is None else optimizer
        self.scaler = make_scaler(policy, config)
        self._policy_loss = make_policy_loss(config.policy_loss)
        self._objective = Objective(
            epsilon=config.epsilon,
            epsilon_high=config.epsilon_high,
            delta=config.delta,
            beta=config.beta,
            level=config.importance_sampling_level,
        )
        self._team = team
        self._runner = UpdateRunner(policy, self.optimizer, team=team)

    def update(self, groups: Sequence[TrainingGroup], *, timer: StepTimer) -> UpdateReport:
        """Make `num_iterations` optimizer steps on the groups and report on the last one.

        Without a KL term, rows with advantage 0 have no gradient. The model does not process
        them, although they count in the loss's mean. If there are no other rows, the policy does
        not change, and all figures of the report are 0.

        When memory runs out before the first step is complete, micro-batches are halved and the
        update starts over; when it runs out later, the remaining steps are skipped. Raises
        MemoryExhaustedError if smaller micro-batches do not help, or if memory runs out in the
        optimizer and the node has several processes.
        """
        rows = make_rows(groups, config=self.config)
        token_count = sum(len(row.completion) for row in rows)
        moving = [row for row in rows if row.advantage or self.config.beta]
        if not moving:
            return UpdateReport(loss=0.0, grad_norm=0.0, clip_ratio=0.0)
        own_rows = self._runner.own_rows(moving)
        while (outcome := self._make_steps(own_rows, timer=timer)) is None:
            release_memory(self.policy.device)
        losses, norm = outcome
        loss, clipped, kl = self._team.sum(
            [
                sum(loss.value.item() for loss in losses),
                sum(loss.clip_low + loss.clip_high for loss in losses),
                sum(loss.kl for loss in losses),
            ]
        )
        return UpdateReport(
            loss=loss, grad_norm=norm, clip_ratio=clipped / token_count, kl=kl / token_count
        )

    def _make_steps(
        self, rows: Sequence[TrainingRow], *, timer: StepTimer
    ) -> tuple[list[Loss], float] | None:
        """Make the optimizer steps; return losses and gradient norm of the last complete step.

        Return None if memory ran out before the first step was complete, so that the update can
        start over. If memory runs out later, the remaining steps are skipped: the complete steps
        have changed the policy and must not be repeated. Raises MemoryExhaustedError as `update`
        does.
        """
        policy, runner = self.policy, self._runner
        with runner.attempt():
            batches = self._prepare_all(rows, timer=timer)
        if runner.needs_retry():
            return None
        set_gradient_types(policy.trainable(), summed=len(batches) > 1 or self._team.size > 1)
        outcome: tuple[list[Loss], float] | None = None
        for _ in range(self.config.num_iterations):
            with runner.attempt():
                losses = [self.accumulate(batch, timer=timer) for batch in batches]
            if runner.needs_retry():
                break
            with timer.measure("optimizer"):
                self._team.sum_gradients(policy.trainable())
                with runner.attempt():
                    norm = self._step()
            if runner.needs_retry():
                runner.check_copies()
                break
            outcome = losses, norm
        return outcome

    def _prepare_all(self, rows: Sequence[TrainingRow], *, timer: StepTimer) -> list[MicroBatch]:
        """Split rows into micro-batches that fit into memory, and prepare each."""
        split = split_rows(
            rows,
            limit=self.policy.update_budget.fit(self.config.micro_batch_tokens),
            shared_prompts=self.policy.shares_prompts,
        )
        return [self.prepare(batch, timer=timer) for batch in split]

    @torch.no_grad()
    def prepare(self, rows: list[TrainingRow], *, timer: StepTimer) -> MicroBatch:
        """Return the rows as a micro-batch, with the log-probs that the settings need.

        If `num_iterations` is above 1, these include the policy's log-probs before the update; with
        a KL term, also the reference model's log-probs.
        """
        old = reference = None
        config, texts = self.config, _texts_of(rows)
        with timer.measure("forward"):
            if config.num_iterations > 1:
                old, _ = self.policy.logprobs(*texts, temperature=config.temperature)
            if config.beta:
                reference = self.policy.reference_logprobs(*texts, temperature=config.temperature)
        return MicroBatch(rows, old_logprobs=old, reference_logprobs=reference)

    def accumulate(self, batch: MicroBatch, *, timer: StepTimer) -> Loss:
        """Add the gradient of one micro-batch to the parameters' gradients; return its loss."""
        rows, config = batch.rows, self.config
        with timer.measure("forward"):
            # At the temperature of the distribution that was sampled from.
            logprobs, mask = self.policy.logprobs(*_texts_of(rows), temperature=config.temperature)
            before = logprobs.detach() if batch.old_logprobs is None else batch.old_logprobs
            old, correction = denominators(rows, before=before, config=config)
            tokens = Tokens(
                logprobs=logprobs,
                old_logprobs=old,
                mask=mask,
                advantages=logprobs.new_tensor([row.advantage for row in rows]),
                weights=logprobs.new_tensor([row.weight for row in rows]),
                reference_logprobs=batch.reference_logprobs,
                correction=correction,
            )
            loss = self._policy_loss.compute(tokens, objective=self._objective)
        with timer.measure("backward"):
            self.scaler.scale(loss.value).backward()  # type: ignore[no-untyped-call]
        return loss

    def _step(self) -> float:
        """Make one optimizer step with clipped gradients, and return their norm before clipping.

        If the norm is not finite, no step is made: a single such gradient would ruin every weight.
        """
        optimizer, limit = self.optimizer, self.config.max_grad_norm
        self.scaler.unscale_(optimizer)
        try:
            if isinstance(optimizer, HalvesAdamW):
                norm = optimizer.clip(limit)
            else:
                norm = torch.nn.utils.clip_grad_norm_(self.policy.trainable(), limit)
            if norm.isfinite():
                with dropping_partial_states(optimizer):
                    self.scaler.step(optimizer)
        finally:
            # Also when memory ran out: the scaler must know that this step is over.
            self.scaler.update()
        optimizer.zero_grad(set_to_none=True)
        return norm.item()

    def state(self) -> dict[str, Any]:
        """Return what `load_state` needs; the policy's weights are saved separately."""
        return {
            "optimizer": self.optimizer.state_dict(),
            "optimizer_kind": self.config.optimizer,
            "loss_scale": self.scaler.state_dict(),
            "rooms": {
                "micro_batch_tokens": self.config.micro_batch_tokens,
                "update": self.policy.update_budget.state(),
                "sampling": self.policy.sampling_budget.state(),
            },
        }

    def load_state(self, state: Mapping[str, Any]) -> str | None:
        """Continue from a saved `state`.

        Return a notice for the owner if the optimizer starts without its saved state, else None.

        The memory budgets are restored too: the run then continues with the same batch sizes, which
        affect rounding. A saved budget is ignored if it is 0, if it is larger than the present one,
        or if it was saved with another `micro_batch_tokens`. Older checkpoints have no budgets.
        """
        notice = resume_optimizer(self.optimizer, state, kind=self.config.optimizer)
        if state.get("loss_scale"):
            self.scaler.load_state_dict(state["loss_scale"])
        saved = state.get("rooms")
        if saved and saved["micro_batch_tokens"] == self.config.micro_batch_tokens:
            self.policy.update_budget.resume(saved["update"])
            self.policy.sampling_budget.resume(saved["sampling"])
        return notice


def set_gradient_types(parameters: Sequence[nn.Parameter], *, summed: bool) -> None:
    """Keep gradients in float32 if they are `summed`, otherwise in their weights' type.

    A sum of many micro-batches in bfloat16 would lose small addends.
    """
    for parameter in parameters:
        parameter.grad_dtype = torch.float32 if summed else parameter.dtype


def _texts_of(rows: Sequence[TrainingRow]) -> tuple[list[list[int]], list[list[int]]]:
    """Return the prompts and the completions of rows."""
    return [row.prompt for row in rows], [row.completion for row in rows]
