"""Two or three arms of a lab report as a small picture, drawn as SVG without scripts; pure.

The home page would load a library of a megabyte for it otherwise.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from swarm_web.dashboard.charts.lab import Style
from swarm_web.lab.shape import LabCurve

WIDTH, HEIGHT = 380, 190
# Where lines begin and end; names stand at the right, the number of rounds below.
_LEFT, _RIGHT, _TOP, _FLOOR = 4, 264, 10, 156
# So far apart are the names of two lines at least.
_ROW = 18.0
# Lines of so few points are smooth at this size.
_POINTS = 60
# Plotly's names of dashes as SVG has them.
DASHES = {"solid": "", "dash": "6 3", "dot": "1.5 3", "dashdot": "7 3 1.5 3", "longdash": "11 4"}


@dataclass(frozen=True)
class SketchedLine:
    """An arm's line and band as points of SVG, `x,y x,y …`; its name stands at `label_y`."""

    name: str
    last: float
    colour: str
    dash: str
    points: str
    band: str
    label_y: str


@dataclass(frozen=True)
class Sketch:
    """The lines of a picture, over so many rounds, and where names and rounds are written."""

    lines: list[SketchedLine]
    rounds: int
    width: int = WIDTH
    height: int = HEIGHT
    left: int = _LEFT
    right: int = _RIGHT
    floor: int = _FLOOR
    label_x: int = _RIGHT + 8
    axis_y: int = _FLOOR + 20

    @property
    def banded(self) -> bool:
        """Whether there were seeds enough for bands."""
        return any(line.band for line in self.lines)


def draw_sketch(curves: Mapping[str, LabCurve], *, styles: Mapping[str, Style]) -> Sketch:
    """Draw curves that begin near 0 over the same rounds."""
    rounds = max(curve.rounds[-1] for curve in curves.values())
    top = max([0.0, *(value for c in curves.values() for value in [*c.mean, *c.high])]) or 1.0

    def place(at: int, value: float) -> str:
        x = _LEFT + (_RIGHT - _LEFT) * at / rounds
        return f"{x:.1f},{_height(value / top):.1f}"

    ends = _spread({name: _height(curve.mean[-1] / top) for name, curve in curves.items()})
    lines = []
    for name, curve in curves.items():
        kept = _thin(len(curve.rounds))
        at = [curve.rounds[i] for i in kept]
        lows = [place(x, curve.low[i]) for x, i in zip(at, kept, strict=True) if curve.low]
        highs = [place(x, curve.high[i]) for x, i in zip(at, kept, strict=True) if curve.high]
        lines.append(
            SketchedLine(
                name=name,
                last=curve.mean[-1],
                colour=styles[name].colour,
                dash=DASHES[styles[name].dash],
                points=" ".join(place(x, curve.mean[i]) for x, i in zip(at, kept, strict=True)),
                band=" ".join([*highs, *reversed(lows)]),
                label_y=f"{ends[name]:.1f}",
            )
        )
    return Sketch(lines, rounds)


def _height(part: float) -> float:
    return _FLOOR - (_FLOOR - _TOP) * part


def _spread(heights: Mapping[str, float]) -> dict[str, float]:
    """Move names upwards where they would cover each other, the lowest first."""
    spread: dict[str, float] = {}
    free = float(_FLOOR)
    for name, y in sorted(heights.items(), key=lambda end: -end[1]):
        spread[name] = min(y, free)
        free = spread[name] - _ROW
    return spread


def _thin(count: int) -> Sequence[int]:
    """Return which of so many points to draw: an even choice, the last one among them."""
    step = max(1, count // _POINTS)
    return range(count - 1, -1, -step)[::-1]
