"""The live views: HTML fragments of pages, rendered by the pages' own templates."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from django.conf import settings
from django.template.loader import render_to_string
from django.utils import timezone, translation

from swarm_web.board.leaderboard import Leaderboard
from swarm_web.core.errors import RequestError
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
    read_home,
    read_pill,
    read_state,
)
from swarm_web.edge.brief_cache import site_state

Message = dict[str, Any]


class ViewKind(StrEnum):
    """Which page a view belongs to: the leaderboard, the home page, or any other page.

    On any other page, only the pill is live: the element in the header with the current round.
    """

    BOARD = "board"
    HOME = "home"
    PILL = "pill"


@dataclass(frozen=True)
class ViewKey:
    """A view in one language, which many browsers may watch."""

    kind: ViewKind
    language: str
    query: BoardQuery = FIRST_PAGE

    @property
    def is_uncommon(self) -> bool:
        """Whether the view is a filtered page of the leaderboard, or a page after the first."""
        return self.query != BoardQuery(window=self.query.window)


@dataclass(frozen=True)
class LiveView:
    """The content of a view, as HTML.

    `rows` are table rows by node, `order` the nodes in the order of the rows, and `regions` other
    parts of the page by element id. `state` is the state token (`reports.home.read_state`). `as_of`
    is the time immediately before the data was read.
    """

    as_of: datetime
    pill: str
    rows: Mapping[str, str] = field(default_factory=dict)
    order: tuple[str, ...] = ()
    regions: Mapping[str, str] = field(default_factory=dict)
    state: str = ""


def read_key(params: Mapping[str, str]) -> ViewKey:
    """Return the view that a socket's query string requests.

    An unknown language counts as the site's default. Raises RequestError for an unknown view, a NUL
    in a value, or an invalid query of the leaderboard.
    """
    check_query(params)
    language = params.get("lang", "")
    if language not in dict(settings.LANGUAGES):
        language = settings.LANGUAGE_CODE
    try:
        kind = ViewKind(params.get("view", ViewKind.BOARD))
    except ValueError as problem:
        raise RequestError(
            "query.view", "There is no such view.", fix=f"Use one of {', '.join(ViewKind)}."
        ) from problem
    if kind is not ViewKind.BOARD:
        return ViewKey(kind, language)
    # A search for a node does not change the rows.
    return ViewKey(kind, language, replace(read_query(params), find=""))


def read_view(key: ViewKey) -> LiveView:
    """Read and render a view.

    Also renews the state token for all pages that this process makes (`edge.brief_cache`).
    """
    now = timezone.now()
    with translation.override(key.language):
        pill = read_pill(now=now)
        state = site_state.renew(read_state)
        text = _render_text("partials/pill.html", {"pill": pill})
        common = LiveView(now, text, state=state)
        if key.kind is ViewKind.PILL:
            return common
        if key.kind is ViewKind.HOME:
            home = read_home(now=now)
            return _render(common, home.board, pill, home=home)
        query = key.query
        board = read_board(query.window, now=now, filters=query.filters, after=query.after)
        return _render(common, board, pill)


def _render(
    common: LiveView, board: Leaderboard, pill: Pill, *, home: Home | None = None
) -> LiveView:
    """Return `common`, the part that all views share, with a board's rows and regions added.

    The regions are those of the home page if `home` is given, otherwise those of the leaderboard.
    """
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


def _render_text(template: str, context: dict[str, object]) -> str:
    """Render a fragment as a plain str: the encoder does not accept Django's SafeString."""
    return render_to_string(template, context).strip()


def describe_snapshot(view: LiveView) -> Message:
    """Return the message with the whole view."""
    return {
        "type": "snapshot",
        "as_of": view.as_of.isoformat(),
        "state": view.state,
        "pill": view.pill,
        "rows": view.rows,
        "order": view.order,
        "regions": view.regions,
    }


def describe_delta(old: LiveView, new: LiveView) -> Message:
    """Return the message with what differs between an earlier and a later reading of a view.

    It has the changed rows and regions, which may be none. It has the pill only if the pill
    changed, and the order of the rows only if the order changed. A delta without changes is sent as
    well: it shows browsers the time, and that they are up to date.
    """
    message: Message = {
        "type": "delta",
        "now": new.as_of.isoformat(),
        "as_of": new.as_of.isoformat(),
        "state": new.state,
        "rows": _changed(old.rows, new.rows),
        "regions": _changed(old.regions, new.regions),
    }
    if new.pill != old.pill:
        message["pill"] = new.pill
    if new.order != old.order:
        message["order"] = new.order
    return message


def _changed(old: Mapping[str, str], new: Mapping[str, str]) -> dict[str, str]:
    return {name: html for name, html in new.items() if old.get(name) != html}
