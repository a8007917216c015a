"""What browsers are told of a page: HTML fragments by the page's own templates."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from django.conf import settings
from django.template.loader import render_to_string
from django.utils import timezone, translation

from swarm_web.dashboard.plain_text import check_query
from swarm_web.dashboard.reports.board import (
    FIRST_PAGE,
    BoardQuery,
    read_board,
    read_lines,
    read_query,
)
from swarm_web.dashboard.reports.home import (
    Home,
    Pill,
    current_announcement,
    read_charted,
    read_home,
    read_pill,
)
from swarm_web.errors import RequestError
from swarm_web.leaderboard import Leaderboard

Message = dict[str, Any]
Turn = tuple[str | None, int | None, str]


class Kind(StrEnum):
    """What a page shows that changes: a page of the board, the home page, or the pill alone."""

    BOARD = "board"
    HOME = "home"
    PILL = "pill"


@dataclass(frozen=True)
class ViewKey:
    """One thing that many browsers watch, in one language."""

    kind: Kind
    language: str
    query: BoardQuery = FIRST_PAGE

    @property
    def is_odd(self) -> bool:
        """Whether it is one of the countless views: filtered, or a later page of a board."""
        return self.query != BoardQuery(window=self.query.window)


@dataclass(frozen=True)
class View:
    """What browsers that watch the same see.

    `rows` are table rows by node and `order` their nodes, `regions` other parts of the page by
    their id. `charted` names the state that charts show: the last booked round and the operator's
    last ruling; `turn` is the season, the current round and its phase; `announced` is the
    announcement and its text, which each visitor may have put away. `as_of` is when it was read.
    """

    as_of: datetime
    pill: str
    rows: Mapping[str, str] = field(default_factory=dict)
    order: tuple[str, ...] = ()
    regions: Mapping[str, str] = field(default_factory=dict)
    charted: tuple[int | None, int | None] = (None, None)
    turn: Turn = (None, None, "none")
    announced: tuple[int, str] | None = None

    @property
    def state(self) -> tuple[object, ...]:
        """What pages show beside the regions that are sent; the same in all views."""
        return self.charted, self.turn, self.announced


def read_key(params: Mapping[str, str]) -> ViewKey:
    """Return what a socket's query string asks for. Raises RequestError."""
    check_query(params)
    language = params.get("lang", "")
    if language not in dict(settings.LANGUAGES):
        language = settings.LANGUAGE_CODE
    try:
        kind = Kind(params.get("view", Kind.BOARD))
    except ValueError as problem:
        raise RequestError(
            "query.view", "There is no such view.", fix=f"Use one of {', '.join(Kind)}."
        ) from problem
    if kind is not Kind.BOARD:
        return ViewKey(kind, language)
    # Who looks for a node sees the same rows as everybody.
    return ViewKey(kind, language, replace(read_query(params), find=""))


def read_view(key: ViewKey) -> View:
    """Read and render a view."""
    now = timezone.now()
    with translation.override(key.language):
        pill, announcement = read_pill(now=now), current_announcement(now=now)
        common = View(
            now,
            _render_pill(pill),
            charted=read_charted(),
            turn=(pill.season, pill.number, pill.phase),
            announced=(announcement.pk, announcement.text) if announcement else None,
        )
        if key.kind is Kind.PILL:
            return common
        if key.kind is Kind.HOME:
            home = read_home(now=now)
            return _render(common, home.board, pill, home=home)
        query = key.query
        board = read_board(query.window, now=now, filters=query.filters, after=query.after)
        return _render(common, board, pill)


def _render(common: View, board: Leaderboard, pill: Pill, *, home: Home | None = None) -> View:
    """Add a board's rows and texts to what all views have in common."""
    lines = read_lines(board)
    texts = ("home_facts", "home_moves", "home_feed") if home else ("board_lead", "quarantined")
    context = {"board": board, "pill": pill, "home": home}
    return replace(
        common,
        rows={line.row.node: _render_text("partials/row.html", {"line": line}) for line in lines},
        order=tuple(line.row.node for line in lines),
        regions={
            name.removeprefix("board_"): _render_text(f"partials/{name}.html", context)
            for name in (*texts, "waiting")
        },
    )


def _render_pill(pill: Pill) -> str:
    return _render_text("partials/pill.html", {"pill": pill})


def _render_text(template: str, context: dict[str, object]) -> str:
    """Render a fragment as plain text, which Django's safe strings are not to an encoder."""
    return render_to_string(template, context).strip()


def describe_snapshot(view: View, *, since: datetime) -> Message:
    """Return everything, for a browser that has nothing.

    `since` is when the present charts and turn were first seen: pages made before are of others.
    """
    return {
        "type": "snapshot",
        "as_of": view.as_of.isoformat(),
        "pill": view.pill,
        "rows": view.rows,
        "order": view.order,
        "regions": view.regions,
        "since": since.isoformat(),
    }


def describe_delta(old: View, new: View) -> Message:
    """Return what changed: rows and regions whose fragments differ, and the order if it does.

    It is told even when nothing changed: browsers learn that they are up to date, and what time
    it is.
    """
    message: Message = {
        "type": "delta",
        "now": new.as_of.isoformat(),
        "as_of": new.as_of.isoformat(),
        "rows": _changed(old.rows, new.rows),
        "regions": _changed(old.regions, new.regions),
        "chart": new.charted != old.charted,
        "turn": new.turn != old.turn,
        "announced": new.announced != old.announced,
    }
    if new.pill != old.pill:
        message["pill"] = new.pill
    if new.order != old.order:
        message["order"] = new.order
    return message


def _changed(old: Mapping[str, str], new: Mapping[str, str]) -> dict[str, str]:
    return {name: html for name, html in new.items() if old.get(name) != html}
