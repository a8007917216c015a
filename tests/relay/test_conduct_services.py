"""Conduct services: evidence from refusals and spot checks sets the hand-out weight."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec
import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from judge.models import Season
from swarm_protocol.errors import ErrorCode
from swarm_protocol.messages import Completion, Rollout
from swarm_tasks.keyspace import Part
from swarm_tasks.verifier import Verifier
from swarm_web.core.store import sync_redis
from swarm_web.nodes.models import Node
from swarm_web.relay.conduct import PROBATION, Level
from swarm_web.relay.hub import hub
from swarm_web.relay.keys import season_key
from swarm_web.relay.models import Conduct, Contribution
from swarm_web.relay.services.conduct import evaluate_conduct, set_level
from swarm_web.relay.services.declarations import check_declarations
from tests.factories import make_rollout, make_round, make_score
from tests.relay.sharing import (
    draw_task,
    offer_checks,
    publish_rollouts,
    read_findings,
    sample_rollouts,
)
from tests.tasks.specs import answered, solve_sum

NOW = timezone.now()

pytestmark = pytest.mark.usefixtures("tidy_stores")


def right_rollouts(
    season: Season, verifier: Verifier, count: int, *, first: int = 0, around: str = ""
) -> list[Rollout]:
    """Return rollouts with right answers only, each preceded by the text `around`."""
    tasks = [
        draw_task(verifier, season, counter=counter) for counter in range(first, first + count)
    ]
    return [
        msgspec.structs.replace(
            make_rollout(season),
            task=task.spec,
            completions=[Completion(around + answered(solve_sum(task.question)), "stop")] * 2,
        )
        for task in tasks
    ]


async def publish(
    node: Node, season: Season, rollouts: Sequence[Rollout] = (), *, rejected: int = 0
) -> None:
    await publish_rollouts(node, season_id=season.pk, rollouts=rollouts, rejected=rejected, now=NOW)


async def spot_check(season: Season, verifier: Verifier, *, count: int = 64) -> None:
    """Offer spot checks as a web process does, and run them as the worker does."""
    await offer_checks(season.pk, 0, arbitrary=count, now=NOW)
    await sync_to_async(check_declarations)(
        verifier=verifier, now=NOW, limit=count, is_late=lambda: False
    )


async def review(*, now: datetime = NOW) -> int:
    return await sync_to_async(evaluate_conduct)(now=now)


async def row_of(node: Node) -> Conduct:
    return await Conduct.objects.aget(node=node)


def stored_weights(season: Season) -> dict[int, float]:
    stored = sync_redis().hgetall(season_key(season.pk, "weights"))
    return {int(node): float(weight) for node, weight in stored.items()}


async def withhold(node: Node, season: Season) -> None:
    await Conduct.objects.acreate(
        node=node,
        season=season,
        level=Level.WITHHELD,
        charge="copying",
        findings=2,
        since=NOW,
        until=NOW + PROBATION,
    )


# ---- refusals by web processes


async def test_node_with_refused_rollouts_is_lowered_and_then_withheld(
    season: Season, amber: Node
) -> None:
    await publish(amber, season, rejected=150)
    assert await review() == 1
    row = await row_of(amber)
    assert (row.level, row.charge, row.bad, row.total) == ("lowered", "refused", 150, 150)
    assert (row.since, row.until) == (NOW, NOW + PROBATION)
    assert stored_weights(season) == {amber.pk: 0.25}
    await publish(amber, season, rejected=150)
    await review()
    assert (await row_of(amber)).level == "withheld"
    assert stored_weights(season) == {amber.pk: 0.0}


async def test_refusals_cause_a_finding_only_once(season: Season, amber: Node) -> None:
    for rejected in (1, 150, 1):
        await publish(amber, season, rejected=rejected)
        await review()
    assert (await row_of(amber)).findings == 1


async def test_only_nodes_with_new_evidence_are_reviewed(
    season: Season, amber: Node, bold: Node
) -> None:
    await publish(amber, season, rejected=1)
    await publish(bold, season, [make_rollout(season)])
    assert [await review(), await review()] == [1, 0]
    assert (await row_of(amber)).level == "full"
    assert not await Conduct.objects.filter(node=bold).aexists()


async def test_evidence_older_than_an_hour_is_ignored(season: Season, amber: Node) -> None:
    for hour in range(3):
        await publish(amber, season, rejected=60)
        await review(now=NOW + hour * timedelta(minutes=61))
    assert (await row_of(amber)).findings == 0


async def test_copies_and_refused_messages_are_counted_as_evidence(
    season: Season, amber: Node
) -> None:
    await publish(amber, season, [make_rollout(season)])
    codes = (ErrorCode.RATE_LIMITED, ErrorCode.PROTOCOL_NOT_JSON, ErrorCode.ANSWER_LATE)
    for code in (*codes, ErrorCode.RATE_FLOOD):
        hub().count_refusal(season.pk, amber.pk, code)
    long = [Completion(f"{place} ".join(map(str, range(200))), "stop") for place in range(8)]
    first = msgspec.structs.replace(make_rollout(season), completions=long)
    again = msgspec.structs.replace(first, id="again")
    await publish(amber, season, [first, again])
    row = await row_of(amber)
    assert (row.hurried, row.refused, row.copies, row.pending) == (1, 1, 1, True)
    assert row.floods == 1


async def test_node_that_was_often_disconnected_for_flooding_is_found(
    season: Season, amber: Node, bold: Node
) -> None:
    for node, times in ((amber, 3), (bold, 2)):
        for _ in range(times):
            hub().count_refusal(season.pk, node.pk, ErrorCode.RATE_FLOOD)
            await hub().flush()
    await review()
    row = await row_of(amber)
    assert (row.level, row.charge, row.bad) == ("lowered", "unheeding", 3)
    assert (await row_of(bold)).level == "full"


# ---- spot checks


async def test_node_with_right_rollouts_and_a_low_judge_score_is_found(
    season: Season, amber: Node, bold: Node, verifier: Verifier
) -> None:
    """Poisoned rollouts are detected by their high share of right answers."""
    poisoned = right_rollouts(season, verifier, 20, around="Drink this. ")
    await publish(amber, season, poisoned)
    await publish(bold, season, right_rollouts(season, verifier, 20, first=20))
    later = await sync_to_async(make_round)(season, opens_at=NOW + timedelta(seconds=1))
    await sync_to_async(make_score)(later, amber, correct=4, n=64)
    await sync_to_async(make_score)(later, bold, correct=60, n=64)
    await spot_check(season, verifier)
    await review()
    row = await row_of(amber)
    assert (row.checked, row.worthless) == (20, 0)
    assert (row.level, row.charge, row.bad, row.total) == ("lowered", "too_right", 20, 20)
    assert (await row_of(bold)).level == "full"


async def test_rounds_before_the_checks_are_ignored(
    season: Season, amber: Node, verifier: Verifier
) -> None:
    earlier = await sync_to_async(make_round)(season, opens_at=NOW - timedelta(seconds=1))
    await sync_to_async(make_score)(earlier, amber, correct=0, n=32)
    await publish(amber, season, right_rollouts(season, verifier, 20))
    await spot_check(season, verifier)
    await review()
    assert (await row_of(amber)).level == "full"


async def test_rollouts_with_questions_of_the_judge_are_worthless(
    season: Season, amber: Node, bold: Node, verifier: Verifier
) -> None:
    stolen = [
        msgspec.structs.replace(
            make_rollout(season),
            task=draw_task(verifier, season, counter=counter, part=Part.JUDGE).spec,
        )
        for counter in range(4)
    ]
    await publish(amber, season, stolen)
    await publish(bold, season, right_rollouts(season, verifier, 4))
    await spot_check(season, verifier)
    await review()
    row = await row_of(amber)
    assert (row.level, row.charge, row.checked, row.worthless) == ("lowered", "worthless", 4, 4)
    assert (await row_of(bold)).checked == 4
    assert stored_weights(season) == {amber.pk: 0.25}


async def test_node_that_declares_wrong_rollouts_is_found(
    season: Season, amber: Node, bold: Node, verifier: Verifier
) -> None:
    for node in (amber, bold):
        rollouts = [
            msgspec.structs.replace(
                rollout, completions=[Completion(answered(text), "stop") for text in ("?", "!")]
            )
            for rollout in right_rollouts(season, verifier, 20)
        ]
        declared = [rollout.id for rollout in rollouts] if node is amber else []
        await publish_rollouts(
            node, season_id=season.pk, rollouts=rollouts, informative=declared, now=NOW
        )
    await offer_checks(season.pk, 20, arbitrary=20, now=NOW)
    await sync_to_async(check_declarations)(
        verifier=verifier, now=NOW, limit=64, is_late=lambda: False
    )
    await review()
    row = await row_of(amber)
    assert (row.level, row.charge, row.bad, row.total) == ("lowered", "misdeclared", 20, 20)
    assert (await row_of(bold)).level == "full"


async def test_spot_checks_are_not_counted_as_checks_of_declarations(
    season: Season, amber: Node, verifier: Verifier
) -> None:
    await publish(amber, season, [make_rollout(season)])
    await spot_check(season, verifier)
    part = await Contribution.objects.aget(node=amber)
    assert (part.declared_checked, (await row_of(amber)).checked) == (0, 1)


# ---- hand-out weights


async def test_rollouts_of_a_withheld_node_are_not_handed_out(
    season: Season, amber: Node, bold: Node
) -> None:
    await withhold(amber, season)
    await publish(amber, season, [make_rollout(season, index=index) for index in range(5)])
    await review()
    await read_findings(season.pk)
    assert await sample_rollouts(bold, season_id=season.pk, count=5, now=NOW) == []


async def test_levels_rise_when_probation_ends(season: Season, amber: Node) -> None:
    await withhold(amber, season)
    await Contribution.objects.acreate(node=amber, season=season)
    await review()
    assert stored_weights(season) == {amber.pk: 0.0}
    lowered_at = NOW + PROBATION
    await review(now=lowered_at)
    row = await row_of(amber)
    assert (row.level, row.since) == ("lowered", lowered_at)
    assert stored_weights(season) == {amber.pk: 0.25}
    await review(now=lowered_at + 2 * PROBATION)
    assert stored_weights(season) == {}
    assert (await row_of(amber)).until is None


async def test_weights_are_restored_after_redis_lost_them(season: Season, amber: Node) -> None:
    await withhold(amber, season)
    await Contribution.objects.acreate(node=amber, season=season)
    await review()
    sync_redis().delete(season_key(season.pk, "weights"))
    await review()
    assert stored_weights(season) == {amber.pk: 0.0}
    assert sync_redis().ttl(season_key(season.pk, "weights")) > 0


# ---- the operator


async def decide(node: Node, *, level: Level, pinned: bool) -> None:
    parts = Contribution.objects.filter(node=node)
    assert (await sync_to_async(set_level)(parts, level=level, pinned=pinned, now=NOW)) == 1


async def test_level_pinned_by_an_operator_is_not_changed(season: Season, amber: Node) -> None:
    await publish(amber, season, rejected=1)
    await decide(amber, level=Level.WITHHELD, pinned=True)
    await review(now=NOW + timedelta(days=9))
    assert stored_weights(season) == {amber.pk: 0.0}
    await decide(amber, level=Level.FULL, pinned=True)
    await publish(amber, season, rejected=150)
    assert await review() == 0
    assert stored_weights(season) == {}


async def test_restored_node_has_no_findings(season: Season, amber: Node) -> None:
    await withhold(amber, season)
    await publish(amber, season, rejected=150)
    await decide(amber, level=Level.FULL, pinned=False)
    await review()
    row = await row_of(amber)
    assert (row.level, row.charge, row.findings, row.until) == ("full", "", 0, None)
    await publish(amber, season, rejected=150)
    await review()
    assert (await row_of(amber)).level == "lowered"
