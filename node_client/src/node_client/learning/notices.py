"""Notices for a node's owner about a step: low memory, skipped updates, a resumed run."""

from collections.abc import Iterator
from math import isfinite

from node_client.learning.update.updater import UpdateReport
from node_client.model.policy import Policy
from node_client.model.sampling import GENERATION_TOKENS
from node_client.settings.train_config import TrainConfig

# float16 scales the loss up as far as the gradients allow, so an occasional overflow is normal.
# This many in a row, each at half the scale of the one before, are not.
MAX_OVERFLOWS_FP16 = 8


class Notices:
    """Notices for the owner, collected until the next step's report."""

    def __init__(self, policy: Policy, config: TrainConfig) -> None:
        self._policy = policy
        self._micro_batch_tokens = config.micro_batch_tokens
        self._max_skipped = MAX_OVERFLOWS_FP16 if config.precision == "fp16" else 1
        # An update's report is of its last pass; earlier ones may have changed the policy.
        last = "the last pass of the step"
        self._skipped = "the step" if config.num_iterations == 1 else last
        self._skipped_in_a_row = 0
        self._pending: list[str] = []
        self._reported = self._times_lowered()

    def add(self, notice: str | None) -> None:
        """Add this notice to the report of the step that ends next; ignore None."""
        if notice is not None:
            self._pending.append(notice)

    def end_step(self, update: UpdateReport) -> str | None:
        """Return the notices of a finished step as one text, or None if there are none.

        They include what happened since the previous step, such as memory that ran out in a judge
        round. Call this method exactly once for each step: it removes the notices that it returns,
        and counts skipped updates.
        """
        notices = [*self._pending, *self._describe_memory(), self._describe_skipped(update)]
        self._pending, self._reported = [], self._times_lowered()
        return " ".join(filter(None, notices)) or None

    def _times_lowered(self) -> tuple[int, int]:
        return self._policy.sampling_budget.times_lowered, self._policy.update_budget.times_lowered

    def _describe_memory(self) -> Iterator[str]:
        sampling, update = self._times_lowered()
        if sampling > self._reported[0]:
            fitting = self._policy.sampling_budget.fit(GENERATION_TOKENS)
            yield (
                f"Memory ran out while completions were sampled, so {fitting} tokens are sampled "
                f"at once instead of {GENERATION_TOKENS}, which takes longer. Shorter completions "
                "(max_completion_length), fewer (num_generations) or a smaller model leave more "
                "room."
            )
        if update > self._reported[1]:
            fitting = self._policy.update_budget.fit(self._micro_batch_tokens)
            yield (
                f"Memory ran out, so updates now run {fitting} tokens at once instead of "
                f"{self._micro_batch_tokens}, also when this run is resumed. If there is more "
                "memory by then, change micro_batch_tokens: what fits is then estimated again."
            )

    def _describe_skipped(self, update: UpdateReport) -> str | None:
        """Return a notice if the update was skipped because its loss or gradient was not finite.

        Otherwise return None. With float16, a gradient that overflows now and then is normal, so
        there is a notice about the gradient only after at least MAX_OVERFLOWS_FP16 skipped updates
        in a row. Call this method for each update, because it counts the skipped updates.
        """
        self._skipped_in_a_row = 0 if update.is_finite else self._skipped_in_a_row + 1
        if not isfinite(update.loss):
            cause = "loss was not a finite number"
        elif self._skipped_in_a_row >= self._max_skipped:
            cause = "gradient was not finite"
        else:
            return None
        return (
            f"The {cause}, so {self._skipped} changed nothing. If this continues, lower the "
            "learning rate or set precision to fp32."
        )
