"""The whole swarm: real web, worker and beat, and three real nodes that train and answer."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pytest
from django.db.models import Count, F, Sum
from django.utils import timezone

from judge.models import Answer, Round, Score, Season, Seat
from judge.services.scheduling import LEAD, schedule_round
from judge.services.seasons import start_season
from swarm_tasks.starter import STARTER_TASKS
from swarm_tasks.verifier import Verifier
from swarm_web.nodes.models import Node
from swarm_web.relay.models import (
    ArchivedRollout,
    Contribution,
    Exchange,
    Learned,
    TrainingPoint,
)
from tests.processes import eventually
from tests.swarm.sites import join, running_site

pytestmark = [pytest.mark.swarm, pytest.mark.django_db(transaction=True)]

QUESTIONS = 8


@pytest.fixture
def season() -> Season:
    season = Season.objects.create(
        name="Three nodes",
        tasks=msgspec.to_builtins(list(STARTER_TASKS)),
        questions_per_round=QUESTIONS,
        cadence_seconds=0,
        open_seconds=180,
        scoring_seconds=30,
        max_new_tokens=24,
    )
    start_season(season, now=timezone.now())
    return season


@pytest.fixture
def site(transactional_db: None, tmp_path: Path) -> Iterator[str]:
    with running_site(tmp_path) as url:
        yield url


def connected() -> int:
    return Node.objects.connected(now=timezone.now()).count()


def test_a_node_killed_mid_round_comes_back_and_nothing_is_counted_twice(
    site: str, season: Season, tmp_path: Path
) -> None:
    with ExitStack() as nodes:
        nodes.enter_context(join("bold", "swarm", site=site, folder=tmp_path))
        nodes.enter_context(join("calm", "isolated", site=site, folder=tmp_path))
        victim = nodes.enter_context(join("amber", "swarm", site=site, folder=tmp_path))
        eventually(lambda: connected() == 3, within_s=120, what="three nodes connected")

        now = timezone.now()
        with Verifier() as verifier:
            quiz = schedule_round(season, opens_at=now + LEAD, now=now, verifier=verifier)
        seats = Seat.objects.filter(round=quiz, node__name="amber", offered_at__isnull=False)
        eventually(seats.exists, within_s=60, what="amber took its seat")
        victim.kill()
        nodes.enter_context(join("amber", "swarm", site=site, folder=tmp_path))
        closed = Round.objects.filter(pk=quiz.pk, phase=Round.Phase.CLOSED)
        eventually(closed.exists, within_s=170, what="the round closed")

        twice = Answer.objects.values("question", "node").annotate(k=Count("id")).filter(k__gt=1)
        assert not twice.exists()
        assert Answer.objects.count() == 3 * QUESTIONS
        assert list(Score.objects.values_list("status", "n")) == 3 * [("scored", QUESTIONS)]
        assert closed.filter(closed_at__lt=F("score_by")).exists()

        used = Contribution.objects.filter(external_used__gt=0)
        eventually(
            lambda: set(used.values_list("node__name", flat=True)) == {"amber", "bold"},
            within_s=120,
            what="both swarm nodes trained on rollouts of others",
        )
        learned = Learned.objects.filter(rollout__in=ArchivedRollout.objects.verified())
        eventually(
            lambda: set(learned.values_list("node__name", flat=True)) == {"amber", "bold"},
            within_s=120,
            what="both are learners of archived rollouts",
        )
    assert not learned.filter(node=F("rollout__author")).exists()
    assert not Contribution.objects.get(node__name="calm").external_used
    assert not Exchange.objects.filter(taker__name="calm").exists()
    credited = Contribution.objects.aggregate(total=Sum("used_by_others"))["total"]
    assert credited == Exchange.objects.aggregate(total=Sum("used"))["total"]
    assert TrainingPoint.objects.filter(node__name="calm", reflection__has_key="recheck").exists()
