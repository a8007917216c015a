"""Behind a pooler each transaction may have another session of Postgres: nothing relies on one."""

import re
import runpy
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection
from django.db.backends.postgresql.base import DatabaseWrapper
from django.utils import timezone

from judge.models import Round
from judge.services.scores import summarise_season
from swarm_web.joining.services import Asker, ask_for_node
from tests.judge.toys import Clock, Site
from tests.processes import PROJECT

# What belongs to a session. Locks that end with their transaction are named pg_advisory_xact_lock.
SESSION_STATE = re.compile(
    r"pg_(try_)?advisory_lock|\bSET SESSION\b|\bDISCARD\b|\b(UN)?LISTEN\b|\bNOTIFY\b"
    r"|\bTEMP(ORARY)? TABLE\b|\bPREPARE\b|\bDECLARE\b|set_config\("
)


@pytest.fixture
def pooled(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Discard what the session holds after each transaction, which may be a single statement."""
    change = DatabaseWrapper._set_autocommit  # type: ignore[attr-defined]  # missing in the stubs

    def discard() -> None:
        if connection.connection.autocommit:
            connection.connection.execute("DISCARD ALL")

    def set_autocommit(wrapper: Any, autocommit: bool) -> None:
        change(wrapper, autocommit)
        discard()

    def execute(run: Callable[..., Any], *call: Any) -> Any:
        result = run(*call)
        discard()
        return result

    connection.ensure_connection()
    monkeypatch.setattr(DatabaseWrapper, "_set_autocommit", set_autocommit)
    with connection.execute_wrapper(execute):
        yield


@pytest.fixture
def pooler_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the connection what DATABASE_POOLER sets."""
    for name, value in read_settings(monkeypatch, pooler=True).items():
        monkeypatch.setitem(connection.settings_dict, name, value)


def read_settings(monkeypatch: pytest.MonkeyPatch, *, pooler: bool) -> dict[str, Any]:
    """Return what the settings say of the database with DATABASE_POOLER on or off."""
    monkeypatch.setenv("DATABASE_POOLER", str(pooler))
    # Which web processes set; tests that import `swarm_web.asgi` leave it behind.
    monkeypatch.setenv("DATABASE_POOL", "0")
    database = runpy.run_path(str(PROJECT / "swarm_web/settings.py"))["DATABASES"]["default"]
    return {name: database.get(name) for name in ("DISABLE_SERVER_SIDE_CURSORS", "OPTIONS")}


def test_no_statement_belongs_to_a_session() -> None:
    sources = [
        path
        for app in ("swarm_web", "judge")
        for path in (PROJECT / app).rglob("*.py")
        if "local" not in path.parts
    ]
    found = {
        f"{path.relative_to(PROJECT)}: {line.strip()}"
        for path in sources
        for line in path.read_text().splitlines()
        if SESSION_STATE.search(line)
    }
    assert found == set()


def test_the_setting_keeps_cursors_and_prepared_queries_out_of_the_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    on = read_settings(monkeypatch, pooler=True)
    assert on["DISABLE_SERVER_SIDE_CURSORS"]
    assert on["OPTIONS"]["prepare_threshold"] is None
    assert not read_settings(monkeypatch, pooler=False)["DISABLE_SERVER_SIDE_CURSORS"]


@pytest.mark.usefixtures("pooled")
def test_here_no_statement_finds_what_another_one_left_in_the_session() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET work_mem = '7MB'")
        cursor.execute("SHOW work_mem")
        assert cursor.fetchone() != ("7MB",)


@pytest.mark.usefixtures("pooled", "pooler_settings")
def test_a_season_is_played_and_its_rounds_are_read_again() -> None:
    clock = Clock()
    site = Site.start(clock)
    site.join("amber", "bold")
    closed = site.play(amber="rrrr", bold="rrww")
    assert closed.phase == Round.Phase.CLOSED
    scores = dict(closed.scores.values_list("node__name", "correct"))
    assert scores == {"amber": 4, "bold": 2}
    summarise_season(site.season)
    assert list(Round.objects.iterator()) == [closed]


@pytest.mark.usefixtures("pooled", "pooler_settings")
def test_a_network_is_held_while_it_asks_for_a_node() -> None:
    request, _ = ask_for_node(Asker(network="192.0.2.1"), now=timezone.now())
    assert request.pk
