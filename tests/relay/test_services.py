"""Contributions through hub and stores: counts of rollouts and bounded reported totals."""

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from judge.models import Season
from swarm_protocol.messages import (
    ReportTraining,
)
from swarm_web.nodes.models import Node
from swarm_web.relay.models import Contribution
from swarm_web.relay.selectors.pooled import pool_size
from tests.factories import make_rollout, make_season
from tests.relay.sharing import publish_rollouts, read_findings, record_training

NOW = timezone.now()

pytestmark = pytest.mark.usefixtures("tidy_stores")


async def publish(node: Node, season: Season, *ids: str, rejected: int = 0) -> None:
    rollouts = [make_rollout(season, rollout_id=rollout_id) for rollout_id in ids]
    await publish_rollouts(node, season_id=season.pk, rollouts=rollouts, rejected=rejected, now=NOW)


async def contribution(node: Node) -> Contribution:
    return await Contribution.objects.aget(node=node)


async def test_published_and_rejected_rollouts_are_stored(season: Season, amber: Node) -> None:
    await publish(amber, season, "r1", "r2", rejected=3)
    row = await contribution(amber)
    assert (row.published, row.rejected) == (2, 3)


async def test_training_report_is_stored(season: Season, amber: Node) -> None:
    report = ReportTraining(
        id="report",
        step=3,
        training_reward=0.75,
        informative_share=0.25,
        local_used=12,
        external_used=0,
        external_dropped={"uninformative": 3},
    )
    await record_training(amber, season_id=season.pk, report=report, now=NOW)
    row = await contribution(amber)
    assert (row.step, row.training_reward, row.informative_share) == (3, 0.75, 0.25)
    assert (row.local_used, row.external_dropped) == (12, {"uninformative": 3})


async def test_contributions_are_counted_per_season(season: Season, amber: Node) -> None:
    await publish(amber, season, "r1")
    next_season = await sync_to_async(make_season)()
    await publish(amber, next_season, "r1")
    await read_findings(season.pk)
    assert await Contribution.objects.acount() == 2
    assert pool_size(season.pk) == pool_size(next_season.pk) == 1
