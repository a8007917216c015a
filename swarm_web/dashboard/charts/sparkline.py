"""A score's last rounds as a line in the width of a table's cell; pure.

Drawn by the server as SVG: fifty charts of a library would make the page wait.
"""

from collections.abc import Sequence
from dataclasses import dataclass

WIDTH = 60.0
HEIGHT = 16.0
# The dot at the end must not be cut off.
_MARGIN = 2.0


@dataclass(frozen=True)
class Sparkline:
    """The points of an SVG polyline, `x,y x,y …`, and where it ends."""

    points: str
    end_x: str
    end_y: str


def draw_sparkline(values: Sequence[float]) -> Sparkline | None:
    """Draw fractions of one, oldest first, on a scale from 0 to 1; None without any."""
    if not values:
        return None
    step = (WIDTH - 2 * _MARGIN) / max(1, len(values) - 1)
    room = HEIGHT - 2 * _MARGIN
    spots = [
        (f"{_MARGIN + i * step:.1f}", f"{HEIGHT - _MARGIN - value * room:.1f}")
        for i, value in enumerate(values)
    ]
    end_x, end_y = spots[-1]
    return Sparkline(" ".join(f"{x},{y}" for x, y in spots), end_x, end_y)
