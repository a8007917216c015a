"""Data migrations of seasons that started before a rule existed."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from judge.models import Round, Season
from swarm_tasks.asked import digest_question

_WEEK = timedelta(days=7)

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def executor() -> Iterator[MigrationExecutor]:
    """Migrate back and forth, and end with the latest migration."""
    executor = MigrationExecutor(connection)
    yield executor
    last = MigrationExecutor(connection)
    last.migrate(last.loader.graph.leaf_nodes())


@pytest.mark.slow
def test_existing_rounds_get_the_digests_of_their_questions(
    executor: MigrationExecutor,
) -> None:
    before = executor.migrate([("judge", "0013_ranks_of_a_season")]).apps
    season = before.get_model("judge", "Season").objects.create(name="s", tasks=[], generator="g")
    now = timezone.now()
    judge_round = before.get_model("judge", "Round").objects.create(
        number=1, season=season, opens_at=now, closes_at=now + timedelta(1), score_by=now + _WEEK
    )
    prompts = ["What is 7 - 3?", "把“你好”倒过来写"]
    for position, prompt in reversed([*enumerate(prompts, start=1)]):
        judge_round.questions.create(position=position, dataset="d", spec={}, prompt=prompt)
    after = MigrationExecutor(connection)
    after.migrate(after.loader.graph.leaf_nodes())
    assert Round.objects.get().digests == [digest_question(prompt) for prompt in prompts]


@pytest.mark.slow
def test_isolated_nodes_keep_publishing_in_seasons_started_earlier(
    executor: MigrationExecutor,
) -> None:
    before = executor.migrate([("judge", "0009_stale_summaries")])
    for number, state in enumerate(("draft", "running", "ended")):
        before.apps.get_model("judge", "Season").objects.create(
            name=state, state=state, tasks=[], generator="g", seed=number
        )
    after = MigrationExecutor(connection)
    after.migrate(after.loader.graph.leaf_nodes())
    stored = dict(Season.objects.values_list("name", "isolated_publish"))
    assert stored == {"draft": False, "running": True, "ended": True}


@pytest.mark.slow
def test_seasons_started_earlier_keep_exact_answer_rules(
    executor: MigrationExecutor,
) -> None:
    before = executor.migrate([("judge", "0013_ranks_of_a_season")])
    for number, state in enumerate(("draft", "running", "ended")):
        before.apps.get_model("judge", "Season").objects.create(
            name=state, state=state, tasks=[], generator="g", seed=number
        )
    after = MigrationExecutor(connection)
    after.migrate(after.loader.graph.leaf_nodes())
    stored = dict(Season.objects.values_list("name", "answer_rules"))
    assert stored == {"draft": "answers-2", "running": "answers-1", "ended": "answers-1"}
