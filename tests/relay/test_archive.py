"""Archive: a bounded sample of published rollouts is stored, checked and pruned."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

import msgspec
import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from judge.models import Season
from swarm_protocol.errors import ErrorCode
from swarm_protocol.messages import Completion, Rollout
from swarm_tasks.keyspace import Part
from swarm_tasks.verifier import DrawnTask, Verifier
from swarm_web.core.store import sync_redis
from swarm_web.nodes.models import Node
from swarm_web.relay.intake import take_samples
from swarm_web.relay.models import ArchivedRollout, Exchange, TrainingPoint
from swarm_web.relay.selectors.archive import recent_rollouts
from swarm_web.relay.services.archiving import check_samples, prune_archive, store_samples
from tests.factories import (
    make_archived_rollout,
    make_exchange,
    make_node,
    make_rollout,
    make_training_point,
)
from tests.relay.conftest import delete_relay_keys
from tests.relay.sharing import draw_task, publish_rollouts

NOW = timezone.now()

pytestmark = pytest.mark.usefixtures("tidy_stores")


async def publish(
    node: Node, season: Season, *rollouts: Rollout, seed: int = 0, minutes: int = 0
) -> None:
    await publish_rollouts(
        node,
        season_id=season.pk,
        rollouts=rollouts,
        now=timezone.now() + timedelta(minutes=minutes),
        random=Random(seed),
    )


async def publish_ids(node: Node, season: Season, *ids: str) -> None:
    await publish(node, season, *(make_rollout(season, rollout_id=name) for name in ids))


def archived() -> list[str]:
    """Store pending samples and return the ids of all archived rollouts."""
    store_samples()
    return sorted(ArchivedRollout.objects.values_list("rollout", flat=True))


def rollout_about(season: Season, task: DrawnTask, *texts: str) -> Rollout:
    completions = [Completion(text=text, finish_reason="stop") for text in texts]
    base = make_rollout(season, rollout_id="r")
    return msgspec.structs.replace(base, task=task.spec, completions=completions)


async def test_published_rollouts_are_archived(season: Season, amber: Node) -> None:
    await publish_ids(amber, season, "a", "b")
    assert await sync_to_async(archived)() == ["a", "b"]
    row = await ArchivedRollout.objects.aget(rollout="a")
    assert (row.author_id, row.season_id, row.solved, row.checked_at) == (
        amber.pk,
        season.pk,
        None,
        None,
    )
    assert row.total == 2
    assert [completion["verdict"] for completion in row.completions] == [None, None]


async def test_repeated_rollout_is_archived_once(season: Season, amber: Node) -> None:
    await publish_ids(amber, season, "a")
    assert await sync_to_async(archived)() == ["a"]
    delete_relay_keys()
    await publish_ids(amber, season, "a")
    assert await sync_to_async(archived)() == ["a"]


async def test_archive_limits_the_rollouts_of_a_node_per_minute(
    season: Season, amber: Node, settings: Any
) -> None:
    settings.RELAY_ARCHIVE_PER_NODE = 2
    await publish_ids(amber, season, "a")
    await publish_ids(amber, season, "b", "c", "d")
    sampled = await sync_to_async(archived)()
    assert (len(sampled), sampled[0]) == (2, "a")


async def test_archive_limits_the_rollouts_of_the_site_per_minute(
    season: Season, amber: Node, settings: Any
) -> None:
    settings.RELAY_ARCHIVE_PER_MINUTE = 3
    bold, _ = await sync_to_async(make_node)("bold")
    await publish_ids(amber, season, "a", "b")
    await publish_ids(bold, season, "c", "d")
    sampled = await sync_to_async(archived)()
    assert (len(sampled), sampled[:2]) == (3, ["a", "b"])


async def test_archive_samples_a_publication_independently_of_its_order(
    season: Season, amber: Node, settings: Any
) -> None:
    settings.RELAY_ARCHIVE_PER_NODE = 1
    sampled: Counter[str] = Counter()
    for seed in range(30):
        rollouts = [make_rollout(season, rollout_id=f"{seed}-{place}") for place in range(3)]
        await publish(amber, season, *rollouts, seed=seed, minutes=seed)
        sampled.update(sample.rollout.id[-1] for sample in take_samples(sync_redis(), limit=3))
    assert sum(sampled.values()) == 30
    assert min(sampled["0"], sampled["1"], sampled["2"]) >= 5


async def test_unreadable_sample_does_not_affect_others(season: Season, amber: Node) -> None:
    await publish_ids(amber, season, "a")
    await sync_to_async(sync_redis().rpush)("{relay}:samples", b"\xc1")
    await publish_ids(amber, season, "b")
    assert await sync_to_async(archived)() == ["a", "b"]


async def test_samples_of_a_deleted_node_are_dropped(season: Season, amber: Node) -> None:
    await publish_ids(amber, season, "a")
    await amber.adelete()
    assert await sync_to_async(archived)() == []


async def test_check_regenerates_the_question_and_scores_each_completion(
    season: Season, amber: Node, verifier: Verifier
) -> None:
    task = draw_task(verifier, season)
    await publish(amber, season, rollout_about(season, task, "no idea", "<answer>x</answer>"))
    await sync_to_async(store_samples)()
    assert await sync_to_async(check_samples)(verifier=verifier, now=NOW) == 1
    [row] = await sync_to_async(recent_rollouts)(season.pk, limit=5)
    assert (row.question, row.solved, row.total, row.checked_at) == (task.question, 0, 2, NOW)
    verdicts = [(each["score"], each["solved"], each["verdict"]) for each in row.completions]
    assert verdicts == [(0.0, False, "no_answer"), (0.0, False, "wrong")]
    assert await sync_to_async(check_samples)(verifier=verifier, now=NOW) == 0


async def test_rollout_with_a_question_of_the_judge_is_not_shown(
    season: Season, amber: Node, verifier: Verifier
) -> None:
    await publish(
        amber, season, rollout_about(season, draw_task(verifier, season, part=Part.JUDGE), *"ab")
    )
    await sync_to_async(store_samples)()
    await sync_to_async(check_samples)(verifier=verifier, now=NOW)
    row = await ArchivedRollout.objects.aget()
    assert (row.failure, row.question, row.solved) == (ErrorCode.TASK_FOREIGN, "", None)
    assert await sync_to_async(recent_rollouts)(season.pk, limit=5) == []


async def test_failed_check_is_stored_and_does_not_block_other_checks(
    season: Season, amber: Node, verifier: Verifier
) -> None:
    task = draw_task(verifier, season)
    foreign = replace(task, spec=msgspec.structs.replace(task.spec, generator="other 1.0"))
    await publish(
        amber,
        season,
        msgspec.structs.replace(rollout_about(season, foreign, *"ab"), id="foreign"),
        rollout_about(season, task, *"ab"),
    )
    await sync_to_async(store_samples)()
    assert await sync_to_async(check_samples)(verifier=verifier, now=NOW) == 2
    row = await ArchivedRollout.objects.aget(rollout="foreign")
    assert (row.failure, row.solved, row.checked_at) == (ErrorCode.TASK_FOREIGN, None, NOW)
    assert len(await sync_to_async(recent_rollouts)(season.pk, limit=5)) == 1


def test_old_rollouts_exchanges_and_training_points_are_pruned(
    season: Season, amber: Node, settings: Any
) -> None:
    settings.RELAY_ARCHIVE_DAYS = 2
    bold, _ = make_node("bold")
    for age in (timedelta(days=1), timedelta(days=3)):
        make_archived_rollout(season, amber, published_at=NOW - age, learners=[bold])
        make_exchange(season, amber, bold, used=1, hour=NOW - age)
        make_training_point(amber, season, step=1, at=NOW - age)
    prune_archive(now=NOW)
    for model in (ArchivedRollout, Exchange, TrainingPoint):
        assert model.objects.count() == 1
