"""Says when updates were left out because they would have spoilt every weight."""

from math import isfinite

from node_client.learning.update import UpdateReport
from node_client.settings.choices import Precision

# In float16 the loss is scaled up as far as the gradients allow, so one that overflows now and then
# is as it should be: so many in a row, each at half the scale of the one before, are not.
PATIENCE_FP16 = 8


class SkippedUpdates:
    """Counts the updates in a row that changed nothing."""

    def __init__(self, precision: Precision) -> None:
        self._patience = PATIENCE_FP16 if precision == "fp16" else 1
        self._in_a_row = 0

    def note(self, update: UpdateReport) -> str | None:
        """Return what the owner should know about an update, if there is anything."""
        self._in_a_row = 0 if update.is_finite else self._in_a_row + 1
        if not isfinite(update.loss):
            return _describe("loss was not a finite number")
        if self._in_a_row >= self._patience:
            return _describe("gradient was not finite")
        return None


def _describe(cause: str) -> str:
    return (
        f"The {cause}, so the step changed nothing. If this goes on, lower the "
        "learning rate or set precision to fp32."
    )
