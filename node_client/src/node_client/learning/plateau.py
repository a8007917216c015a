"""When a reward has stopped rising. Pure."""

from dataclasses import dataclass, field
from statistics import fmean

WINDOW = 25
PATIENCE = 2
LEAST_GAIN = 0.01


@dataclass
class Plateau:
    """Follows a reward, one value a step, by the means of windows that do not overlap.

    A plateau is reached when PATIENCE windows of WINDOW steps in a row have a mean that is not at
    least LEAST_GAIN above the best mean before them: two, because a window's mean over a small
    node's few rollouts is uncertain by more than the gain. Once reached, it stays reached.
    """

    best: float | None = None
    waited: int = 0
    window: list[float] = field(default_factory=list)

    @property
    def reached(self) -> bool:
        """Whether the reward has stopped rising."""
        return self.waited >= PATIENCE

    def note(self, reward: float) -> None:
        """Take the next step's value."""
        if self.reached:
            return
        self.window.append(reward)
        if len(self.window) < WINDOW:
            return
        mean = fmean(self.window)
        self.window.clear()
        if self.best is None or mean >= self.best + LEAST_GAIN:
            self.best, self.waited = mean, 0
        else:
            self.waited += 1
