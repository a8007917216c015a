"""Test that no code relies on session state, which a transaction pooler does not preserve."""

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
from swarm_web.joining.services import JoinRequester, request_node
from tests.judge.toys import Clock, Site
from tests.processes import PROJECT

# Uses of session state. Locks that end with their transaction are named pg_advisory_xact_lock.
SESSION_STATE = re.compile(
    r"pg_(try_)?advisory_lock|\bSET SESSION\b|\bDISCARD\b|\b(UN)?LISTEN\b|\bNOTIFY\b"
    r"|\bTEMP(ORARY)? TABLE\b|\bPREPARE\b|\bDECLARE\b|set_config\("
)


@pytest.fixture
def pooled(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Discard the session state after each transaction, which may be a single statement."""
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
    """Apply the settings of DATABASE_POOLER to the connection."""
    for name, value in read_settings(monkeypatch, pooler=True).items():
        monkeypatch.setitem(connection.settings_dict, name, value)


def read_settings(monkeypatch: pytest.MonkeyPatch, *, pooler: bool) -> dict[str, Any]:
    """Return the database settings with DATABASE_POOLER on or off."""
    monkeypatch.setenv("DATABASE_POOLER", str(pooler))
    # Web processes set this; tests that import `swarm_web.asgi` may have set it too.
    monkeypatch.setenv("DATABASE_POOL", "0")
    database = runpy.run_path(str(PROJECT / "swarm_web/settings.py"))["DATABASES"]["default"]
    return {name: database.get(name) for name in ("DISABLE_SERVER_SIDE_CURSORS", "OPTIONS")}


def test_no_code_uses_session_state() -> None:
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


def test_database_pooler_disables_cursors_and_prepared_statements(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    on = read_settings(monkeypatch, pooler=True)
    assert on["DISABLE_SERVER_SIDE_CURSORS"]
    assert on["OPTIONS"]["prepare_threshold"] is None
    assert not read_settings(monkeypatch, pooler=False)["DISABLE_SERVER_SIDE_CURSORS"]


@pytest.mark.usefixtures("pooled")
def test_pooled_fixture_discards_session_state_after_each_statement() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET work_mem = '7MB'")
        cursor.execute("SHOW work_mem")
        assert cursor.fetchone() != ("7MB",)


@pytest.mark.usefixtures("pooled", "pooler_settings")
def test_season_works_behind_a_pooler() -> None:
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
def test_join_request_works_behind_a_pooler() -> None:
    request, _ = request_node(JoinRequester(network="192.0.2.1"), now=timezone.now())
    assert request.pk
