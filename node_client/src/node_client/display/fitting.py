"""Fits the panel's rows into the lines of a terminal.

If there are too few lines, rows are shortened or removed, the least important first. The health
row, the problem and its fix are cut to one line last.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

LABEL_WIDTH = 8
_GAP = 2
ELLIPSIS = "…"

# The cuts, in the order in which they are made: a maximum number of lines, and the rows that it
# limits.
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
class PanelRow:
    """A row of the panel. `_CUTS` refers to rows by `name`.

    If `label` is None, the text has the full width. Otherwise it is in the column beside the
    labels, even if `label` is empty.
    """

    name: str
    text: Text
    label: str | None = None


@dataclass(frozen=True)
class _Wrapped:
    row: PanelRow
    lines: list[Text]


def fit_rows(
    rows: Sequence[PanelRow], *, console: Console, width: int, height: int | None
) -> list[Text]:
    """Return the rows as lines of at most `width` columns.

    There are at most `height` lines; None sets no limit. If the rows need more, those named in
    _CUTS are shortened. If they still need more, the last lines are left out.
    """
    wrapped = [_wrap(row, console=console, width=width) for row in rows]
    limits = {} if height is None else _choose_limits(wrapped, height=height)
    lines = [line for each in wrapped for line in _draw(each, limits, width=width)]
    return lines[:height]


def _choose_limits(wrapped: Sequence[_Wrapped], *, height: int) -> dict[str, int]:
    """Return the maximum number of lines of each row that must be cut, by the row's name.

    Apply the limits of _CUTS one after the other until all rows fit into `height` lines.
    """
    limits: dict[str, int] = {}
    for limit, names in _CUTS:
        if sum(_height(each, limits) for each in wrapped) <= height:
            break
        limits |= dict.fromkeys(names, limit)
    return limits


def _height(each: _Wrapped, limits: dict[str, int]) -> int:
    return min(len(each.lines), limits.get(each.row.name, len(each.lines)))


def _wrap(row: PanelRow, *, console: Console, width: int) -> _Wrapped:
    inner = width if row.label is None else width - LABEL_WIDTH - _GAP
    return _Wrapped(row, list(row.text.wrap(console, max(1, inner), overflow="fold")))


def _draw(each: _Wrapped, limits: dict[str, int], *, width: int) -> Iterator[Text]:
    """Yield a row's lines up to its limit, the first with the row's label.

    If lines are cut, the last one that is left ends with an ellipsis.
    """
    height = _height(each, limits)
    label = each.row.label
    for number, line in enumerate(each.lines[:height]):
        rendered = line.copy()
        rendered.rstrip()
        if label is not None:
            name = label if number == 0 else ""
            rendered = Text.assemble((f"{name:<{LABEL_WIDTH + _GAP}}", "dim"), rendered)
        if number == height - 1 and height < len(each.lines):
            rendered.truncate(width - len(ELLIPSIS))
            rendered.append(ELLIPSIS)
        yield rendered
