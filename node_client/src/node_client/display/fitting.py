"""How the panel's parts share the lines of a terminal. Pure.

Where there are too few lines for all of them, parts get shorter or go, the least important first.
The health line, notices and the problem are the last.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

LABEL_WIDTH = 8
_GAP = 2
ELLIPSIS = "…"

# What gives way, in this order: how many lines are left to parts, by their names.
_CUTS: tuple[tuple[int, tuple[str, ...]], ...] = (
    (1, ("asked", "answered")),
    (0, ("asked", "answered", "gap below")),
    (0, ("all runs",)),
    (0, ("machine",)),
    (0, ("saved",)),
    (0, ("gap",)),
    (0, ("curve",)),
    (2, ("taken",)),
    (1, ("node", "given", "taken")),
    (1, ("model", "season")),
    (0, ("held out",)),
    (2, ("judge",)),
    (1, ("training",)),
    (0, ("taken", "given")),
    (0, ("season", "model")),
    (1, ("judge",)),
    (0, ("node",)),
    (2, ("problem", "fix", "notice")),
    (3, ("health",)),
    (1, ("notice",)),
    (0, ("judge", "round")),
    (0, ("training",)),
    (1, ("problem", "fix", "health")),
)


@dataclass(frozen=True)
class Part:
    """One part of the panel by its name; without a label it takes the whole width."""

    name: str
    text: Text
    label: str | None = None


@dataclass(frozen=True)
class _Wrapped:
    part: Part
    lines: list[Text]


def fit_parts(
    parts: Sequence[Part], *, console: Console, width: int, room: int | None
) -> list[Text]:
    """Return the parts as lines of at most `width` cells, at most `room` of them if it is given."""
    wrapped = [_wrap(part, console=console, width=width) for part in parts]
    limits = {} if room is None else _choose_limits(wrapped, room=room)
    lines = [line for each in wrapped for line in _draw(each, limits, width=width)]
    return lines[:room]


def _choose_limits(wrapped: Sequence[_Wrapped], *, room: int) -> dict[str, int]:
    """Return how many lines parts are left: as few cuts as make all of them fit, in their order."""
    limits: dict[str, int] = {}
    for limit, names in _CUTS:
        if sum(_height(each, limits) for each in wrapped) <= room:
            break
        limits |= dict.fromkeys(names, limit)
    return limits


def _height(each: _Wrapped, limits: dict[str, int]) -> int:
    return min(len(each.lines), limits.get(each.part.name, len(each.lines)))


def _wrap(part: Part, *, console: Console, width: int) -> _Wrapped:
    inner = width if part.label is None else width - LABEL_WIDTH - _GAP
    return _Wrapped(part, list(part.text.wrap(console, max(1, inner), overflow="fold")))


def _draw(each: _Wrapped, limits: dict[str, int], *, width: int) -> Iterator[Text]:
    """Yield a part's lines with its label; an ellipsis tells that some are missing."""
    height = _height(each, limits)
    label = each.part.label
    for number, line in enumerate(each.lines[:height]):
        shown = line.copy()
        shown.rstrip()
        if label is not None:
            name = label if number == 0 else ""
            shown = Text.assemble((f"{name:<{LABEL_WIDTH + _GAP}}", "dim"), shown)
        if number == height - 1 and height < len(each.lines):
            shown.truncate(width - len(ELLIPSIS))
            shown.append(ELLIPSIS)
        yield shown
