"""Charts as pages show them: a figure, and the same rows as a table; pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from swarm_web.dashboard.charts.parts import Figure

# Numbers are written as the page writes them: fractions of one as shares, pairs as intervals.
Value = str | int | float | tuple[float, float] | None


@dataclass(frozen=True)
class Drawing:
    """A figure and its table; without rows there is nothing to draw yet.

    A page shows the table and leaves the figure to an address of its own, so `draw` waits until
    the figure is asked for.
    """

    draw: Callable[[], Figure]
    columns: Sequence[str]
    rows: Sequence[Sequence[Value]] = field(default_factory=list)

    @property
    def figure(self) -> Figure:
        """The figure, drawn anew each time."""
        return self.draw()
