"""Contributions through hub and stores: counts of rollouts and bounded reported totals."""

from datetime import timedelta

import msgspec
import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from judge.models import Season
from swarm_protocol.codec import MAX_FRAME_BYTES, encode
from swarm_protocol.messages import (
    MAX_ROLLOUT_BYTES,
    Completion,
    ReportTraining,
    RolloutsSampled,
)
from swarm_web.nodes.models import Node
from swarm_web.relay.models import Contribution
from swarm_web.relay.selectors.pooled import pool_size
from tests.factories import make_node, make_rollout, make_season
from tests.relay.sharing import publish_rollouts, read_findings, record_training, sample_rollouts

NOW = timezone.now()

pytestmark = pytest.mark.usefixtures("tidy_stores")


async def publish(node: Node, season: Season, *ids: str, rejected: int = 0) -> None:
    rollouts = [make_rollout(season, rollout_id=rollout_id) for rollout_id in ids]
    await publish_rollouts(node, season_id=season.pk, rollouts=rollouts, rejected=rejected, now=NOW)


def report(*, step: int, external_used: int = 0, reward: float = 0.5) -> ReportTraining:
    return ReportTraining(
        id="report",
        step=step,
        training_reward=reward,
        informative_share=0.25,
        local_used=4 * step,
        external_used=external_used,
        external_dropped={"uninformative": step},
    )


async def contribution(node: Node) -> Contribution:
    return await Contribution.objects.aget(node=node)


async def test_drawn_rollout_is_unchanged_with_its_sender_and_age(
    season: Season, amber: Node, bold: Node
) -> None:
    rollout = make_rollout(season)
    await publish_rollouts(amber, season_id=season.pk, rollouts=[rollout], now=NOW)
    [drawn] = await sample_rollouts(
        bold, season_id=season.pk, count=4, now=NOW + timedelta(seconds=3)
    )
    assert (drawn.node, drawn.age_s, drawn.rollout) == ("amber", 3.0, rollout)


async def test_log_probs_are_drawn_only_if_requested(
    season: Season, amber: Node, bold: Node
) -> None:
    bare = make_rollout(season)
    full = msgspec.structs.replace(
        bare,
        completions=[
            msgspec.structs.replace(each, logprobs="AAIABA==") for each in bare.completions
        ],
    )
    calm, _ = await sync_to_async(make_node)("calm")
    await publish_rollouts(amber, season_id=season.pk, rollouts=[full], now=NOW)
    drawn = [
        await sample_rollouts(node, season_id=season.pk, count=1, now=NOW, with_logprobs=requested)
        for node, requested in ((bold, False), (calm, True))
    ]
    assert [sample[0].rollout for sample in drawn] == [bare, full]


async def test_sample_fits_into_one_frame(season: Season, amber: Node, bold: Node) -> None:
    text = "x" * (MAX_ROLLOUT_BYTES // 8)
    long = [Completion(text=text, finish_reason="length")] * 7
    rollouts = [
        msgspec.structs.replace(make_rollout(season, rollout_id=f"r{i}"), completions=long)
        for i in range(16)
    ]
    await publish_rollouts(amber, season_id=season.pk, rollouts=rollouts, now=NOW)
    drawn = await sample_rollouts(bold, season_id=season.pk, count=16, now=NOW)
    frame = encode(RolloutsSampled(reply_to="r" * 64, rollouts=drawn))
    assert 0.8 * MAX_FRAME_BYTES < len(frame) <= MAX_FRAME_BYTES
    assert (await contribution(bold)).delivered == len(drawn)


async def test_large_rollouts_do_not_exclude_small_ones_from_the_frame(
    season: Season, amber: Node, bold: Node
) -> None:
    long = [Completion(text="x" * (MAX_ROLLOUT_BYTES // 8), finish_reason="length")] * 7
    large = [
        msgspec.structs.replace(make_rollout(season, rollout_id=f"large{i}"), completions=long)
        for i in range(16)
    ]
    small = [make_rollout(season, rollout_id=f"small{i}") for i in range(4)]
    await publish_rollouts(
        amber,
        season_id=season.pk,
        rollouts=[*large, *small],
        informative=[rollout.id for rollout in large],
        now=NOW,
    )
    drawn = await sample_rollouts(
        bold, season_id=season.pk, count=20, now=NOW, prefer="informative"
    )
    assert {rollout.id for rollout in small} < {each.rollout.id for each in drawn}


async def test_omitted_log_probs_do_not_count_towards_the_frame_size(
    season: Season, amber: Node, bold: Node
) -> None:
    completions = [Completion(text="x", finish_reason="stop", logprobs="A" * 40_000)] * 2
    rollouts = [
        msgspec.structs.replace(make_rollout(season, rollout_id=f"r{i}"), completions=completions)
        for i in range(16)
    ]
    await publish_rollouts(amber, season_id=season.pk, rollouts=rollouts, now=NOW)
    drawn = await sample_rollouts(bold, season_id=season.pk, count=16, now=NOW)
    assert len(drawn) == 16


async def test_published_and_rejected_rollouts_are_stored(season: Season, amber: Node) -> None:
    await publish(amber, season, "r1", "r2", rejected=3)
    row = await contribution(amber)
    assert (row.published, row.rejected) == (2, 3)


async def test_pool_size_is_stored(season: Season, amber: Node) -> None:
    await publish(amber, season, "r1", "r2")
    await read_findings(season.pk)
    assert pool_size(season.pk) == 2


async def test_repeated_rollout_is_counted_once(season: Season, amber: Node) -> None:
    await publish(amber, season, "r1", "r2")
    await publish(amber, season, "r2", "r3")
    assert (await contribution(amber)).published == 3


async def test_delivered_rollouts_are_counted_and_delivered_once(
    season: Season, amber: Node, bold: Node
) -> None:
    await publish(amber, season, "r1", "r2", "r3")
    for _ in range(2):
        await sample_rollouts(bold, season_id=season.pk, count=2, now=NOW)
    assert (await contribution(bold)).delivered == 3


async def test_training_report_is_stored(season: Season, amber: Node) -> None:
    await record_training(amber, season_id=season.pk, report=report(step=3, reward=0.75), now=NOW)
    row = await contribution(amber)
    assert (row.step, row.training_reward, row.informative_share) == (3, 0.75, 0.25)
    assert (row.local_used, row.external_dropped) == (12, {"uninformative": 3})


async def test_totals_never_decrease(season: Season, amber: Node) -> None:
    await record_training(amber, season_id=season.pk, report=report(step=9), now=NOW)
    await record_training(amber, season_id=season.pk, report=report(step=2), now=NOW)
    row = await contribution(amber)
    assert (row.step, row.local_used) == (9, 36)


async def test_used_external_rollouts_are_limited_to_delivered_ones(
    season: Season, amber: Node, bold: Node
) -> None:
    await publish(amber, season, "r1", "r2")
    await sample_rollouts(bold, season_id=season.pk, count=2, now=NOW)
    await record_training(
        bold, season_id=season.pk, report=report(step=1, external_used=1), now=NOW
    )
    assert (await contribution(bold)).external_used == 1
    await record_training(
        bold, season_id=season.pk, report=report(step=2, external_used=99), now=NOW
    )
    assert (await contribution(bold)).external_used == 2


async def test_contributions_are_counted_per_season(season: Season, amber: Node) -> None:
    await publish(amber, season, "r1")
    next_season = await sync_to_async(make_season)()
    await publish(amber, next_season, "r1")
    await read_findings(season.pk)
    assert await Contribution.objects.acount() == 2
    assert pool_size(season.pk) == pool_size(next_season.pk) == 1
