"""What becomes of earlier seasons when their rules gain one."""

from collections.abc import Iterator

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from judge.models import Season

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def executor() -> Iterator[MigrationExecutor]:
    """Go back and forth between migrations, and end with the latest."""
    executor = MigrationExecutor(connection)
    yield executor
    last = MigrationExecutor(connection)
    last.migrate(last.loader.graph.leaf_nodes("judge"))


@pytest.mark.slow
def test_in_seasons_that_had_begun_isolated_nodes_go_on_publishing(
    executor: MigrationExecutor,
) -> None:
    before = executor.migrate([("judge", "0009_stale_summaries")])
    for number, state in enumerate(("draft", "running", "ended")):
        before.apps.get_model("judge", "Season").objects.create(
            name=state, state=state, tasks=[], generator="g", seed=number
        )
    after = MigrationExecutor(connection)
    after.migrate(after.loader.graph.leaf_nodes("judge"))
    told = dict(Season.objects.values_list("name", "isolated_publish"))
    assert told == {"draft": False, "running": True, "ended": True}


@pytest.mark.slow
def test_seasons_that_had_begun_go_on_reading_answers_to_the_letter(
    executor: MigrationExecutor,
) -> None:
    before = executor.migrate([("judge", "0013_ranks_of_a_season")])
    for number, state in enumerate(("draft", "running", "ended")):
        before.apps.get_model("judge", "Season").objects.create(
            name=state, state=state, tasks=[], generator="g", seed=number
        )
    after = MigrationExecutor(connection)
    after.migrate(after.loader.graph.leaf_nodes("judge"))
    told = dict(Season.objects.values_list("name", "answer_rules"))
    assert told == {"draft": "answers-2", "running": "answers-1", "ended": "answers-1"}
