"""Assertions about a site's leaderboard."""

from judge.models import Season, Window
from tests.judge.naive import naive_boards, stored_boards
from tests.judge.toys import Site


def assert_exact(site: Site) -> None:
    """Check every window against a computation from scratch."""
    assert stored_boards(site.season) == naive_boards(site.season, now=site.clock.now)


def change_rules(site: Site, **rules: object) -> None:
    Season.objects.filter(pk=site.season.pk).update(**rules)
    site.season.refresh_from_db()


def ranks(site: Site, window: str = "season") -> dict[str, tuple[int | None, int | None]]:
    return {name: (row.rank_low, row.rank_high) for name, row in site.board(window).items()}


def n_by_window(site: Site, name: str) -> dict[str, int]:
    return {w.value: row.n for w in Window if (row := site.board(w.value).get(name)) is not None}
