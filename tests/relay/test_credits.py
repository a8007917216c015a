"""Credits: reports of used rollouts are credited once, and only if delivered."""

from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.utils import timezone

from judge.models import Season
from swarm_protocol.errors import ErrorCode
from swarm_protocol.messages import ReportTraining, RolloutName
from swarm_tasks.verifier import Verifier
from swarm_web.nodes.models import Node
from swarm_web.relay.models import ArchivedRollout, Contribution, Exchange, Learned
from swarm_web.relay.pairs import MAX_PER_MINUTE
from swarm_web.relay.selectors.history import Flow, exchanges_in
from swarm_web.relay.services import crediting
from swarm_web.relay.services.archiving import check_samples, store_samples
from swarm_web.relay.services.crediting import book_credits
from tests.factories import make_node, make_rollout
from tests.relay.sharing import publish_rollouts, record_training, sample_rollouts

NOW = timezone.now()

pytestmark = pytest.mark.usefixtures("tidy_stores")


async def deliver(season: Season, *ids: str, giver: Node, taker: Node) -> None:
    """Publish rollouts of the giver, and draw the whole pool for the taker."""
    rollouts = [make_rollout(season, rollout_id=name) for name in ids]
    await publish_rollouts(giver, season_id=season.pk, rollouts=rollouts, now=NOW)
    await sample_rollouts(taker, season_id=season.pk, count=64, now=NOW)


async def report(node: Node, season: Season, *used: tuple[str, str], **fields: Any) -> None:
    training_report = ReportTraining(
        id="t",
        step=fields.pop("step", 1),
        training_reward=0.5,
        informative_share=0.5,
        local_used=1,
        external_used=len(used),
        used=[RolloutName(giver, name) for giver, name in used],
        **({"reflection": fields["reflection"]} if "reflection" in fields else {}),
    )
    now = NOW + fields.get("later", timedelta())
    await record_training(node, season_id=season.pk, report=training_report, now=now)


@sync_to_async
def book() -> None:
    store_samples()
    while book_credits():
        pass


@sync_to_async
def flows(season: Season) -> list[Flow]:
    return exchanges_in(season.pk, hour=NOW, limit=10)


@sync_to_async
def used(season: Season, node: Node) -> int:
    given = Contribution.objects.filter(season=season, node=node)
    return given.values_list("used_by_others", flat=True).first() or 0


async def test_report_credits_the_giver_and_records_the_learner(
    season: Season, amber: Node, bold: Node
) -> None:
    await deliver(season, "a", "b", giver=amber, taker=bold)
    await report(bold, season, ("amber", "a"))
    await book()
    assert await flows(season) == [Flow("amber", "bold", 1)]
    assert await used(season, amber) == 1
    learned = await Learned.objects.select_related("rollout").aget()
    assert (learned.rollout.rollout, learned.node_id) == ("a", bold.pk)
    counts = ArchivedRollout.objects.order_by("rollout").values_list("learned_by", flat=True)
    assert [count async for count in counts] == [1, 0]


async def test_rollout_delivered_twice_is_credited_once(
    season: Season, amber: Node, bold: Node
) -> None:
    for _ in range(2):
        await deliver(season, "a", giver=amber, taker=bold)
        await report(bold, season, ("amber", "a"))
    await book()
    assert await flows(season) == [Flow("amber", "bold", 1)]


@pytest.mark.parametrize(
    "forged", [("amber", "made-up"), ("calm", "a"), ("nobody", "a"), ("amber/a", "a")]
)
async def test_report_of_an_undelivered_rollout_gives_no_credit(
    season: Season, amber: Node, bold: Node, forged: tuple[str, str]
) -> None:
    await sync_to_async(make_node)("calm")
    await deliver(season, "a", giver=amber, taker=bold)
    await report(bold, season, forged)
    await book()
    assert await flows(season) == []
    assert not await Learned.objects.aexists()
    assert await used(season, amber) == 0


async def test_credits_of_several_takers_are_summed(
    season: Season, amber: Node, bold: Node
) -> None:
    calm, _ = await sync_to_async(make_node)("calm")
    await deliver(season, "a", "b", giver=amber, taker=bold)
    await deliver(season, giver=amber, taker=calm)
    await report(bold, season, ("amber", "a"))
    await book()
    await report(bold, season, ("amber", "b"))
    await report(calm, season, ("amber", "a"))
    await book()
    assert await flows(season) == [Flow("amber", "bold", 2), Flow("amber", "calm", 1)]
    assert await used(season, amber) == 3
    row = await ArchivedRollout.objects.aget(rollout="a")
    assert row.learned_by == 2


async def test_credits_of_a_pair_are_limited(season: Season, amber: Node, bold: Node) -> None:
    ids = [f"r{i}" for i in range(3 * MAX_PER_MINUTE)]
    await deliver(season, *ids, giver=amber, taker=bold)
    for _ in range(2):
        await report(bold, season, *(("amber", name) for name in ids))
        await book()
    assert await used(season, amber) == MAX_PER_MINUTE
    assert await flows(season) == [Flow("amber", "bold", len(ids))]


async def test_limit_of_a_pair_is_per_minute(season: Season, amber: Node, bold: Node) -> None:
    ids = [f"r{i}" for i in range(2 * MAX_PER_MINUTE)]
    await deliver(season, *ids, giver=amber, taker=bold)
    first, second = ids[:MAX_PER_MINUTE], ids[MAX_PER_MINUTE:]
    await report(bold, season, *(("amber", name) for name in first))
    later = timedelta(minutes=1)
    await report(bold, season, *(("amber", name) for name in second), later=later)
    await book()
    assert await used(season, amber) == 2 * MAX_PER_MINUTE


async def test_limit_of_a_pair_is_shared_by_nodes_of_an_owner(
    season: Season, amber: Node, bold: Node
) -> None:
    calm, _ = await sync_to_async(make_node)("calm")
    owner = await User.objects.acreate(username="olive")
    await Node.objects.filter(pk__in=[bold.pk, calm.pk]).aupdate(owner=owner)
    ids = [f"r{i}" for i in range(MAX_PER_MINUTE)]
    await deliver(season, *ids, giver=amber, taker=bold)
    await deliver(season, giver=amber, taker=calm)
    for taker in (bold, calm):
        await report(taker, season, *(("amber", name) for name in ids))
    await book()
    assert await used(season, amber) == MAX_PER_MINUTE


async def test_pairs_have_separate_limits(season: Season, amber: Node, bold: Node) -> None:
    calm, _ = await sync_to_async(make_node)("calm")
    ids = [f"r{i}" for i in range(MAX_PER_MINUTE)]
    await deliver(season, *ids, giver=amber, taker=bold)
    await deliver(season, giver=amber, taker=calm)
    for taker in (bold, calm):
        await report(taker, season, *(("amber", name) for name in ids))
    await book()
    assert await used(season, amber) == 2 * MAX_PER_MINUTE


REFUTED = [{"solved": 0}, {"failure": ErrorCode.TASK_FOREIGN}]
SOUND = [{"solved": 1}, {"failure": ErrorCode.VERIFIER_FAILED}]


@pytest.mark.parametrize(
    ("found", "counted"), [*((each, 0) for each in REFUTED), *((each, 1) for each in SOUND)]
)
async def test_refuted_rollout_gives_no_credit(
    season: Season, amber: Node, bold: Node, found: dict[str, Any], counted: int
) -> None:
    await deliver(season, "a", giver=amber, taker=bold)
    await book()
    await ArchivedRollout.objects.aupdate(checked_at=NOW, **found)
    await report(bold, season, ("amber", "a"))
    await book()
    assert await used(season, amber) == counted
    assert await flows(season) == [Flow("amber", "bold", 1)]


async def test_credits_of_a_rollout_refuted_later_are_revoked(
    season: Season, amber: Node, bold: Node, verifier: Verifier
) -> None:
    await deliver(season, "a", giver=amber, taker=bold)
    await report(bold, season, ("amber", "a"))
    await book()
    assert await used(season, amber) == 1
    wrong = [{"text": "<answer>wrong</answer>", "finish_reason": "stop"}] * 2
    await ArchivedRollout.objects.aupdate(completions=wrong)
    assert await sync_to_async(check_samples)(verifier=verifier, now=NOW)
    assert await used(season, amber) == 0
    assert await flows(season) == [Flow("amber", "bold", 1)]


async def test_new_pairs_above_the_hourly_limit_get_credits_but_no_exchange(
    season: Season, amber: Node, bold: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    await deliver(season, "a", "b", giver=amber, taker=bold)
    await report(bold, season, ("amber", "a"))
    await book()
    monkeypatch.setattr(crediting, "MAX_PAIRS_PER_HOUR", 1)
    await deliver(season, "c", giver=bold, taker=amber)
    await report(amber, season, ("bold", "c"))
    await report(bold, season, ("amber", "b"))
    await book()
    assert await flows(season) == [Flow("amber", "bold", 2)]
    assert await used(season, bold) == 1


async def test_a_full_hour_does_not_limit_the_next_one(
    season: Season, amber: Node, bold: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    await deliver(season, "a", giver=amber, taker=bold)
    await report(bold, season, ("amber", "a"))
    await book()
    monkeypatch.setattr(crediting, "MAX_PAIRS_PER_HOUR", 1)
    await deliver(season, "b", giver=bold, taker=amber)
    await deliver(season, "c", giver=bold, taker=amber)
    await report(amber, season, ("bold", "b"))
    await report(amber, season, ("bold", "c"), later=timedelta(hours=1))
    await book()
    stored = [pair async for pair in Exchange.objects.values_list("giver__name", "used")]
    assert sorted(stored) == [("amber", 1), ("bold", 1)]
