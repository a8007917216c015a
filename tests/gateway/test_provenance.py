"""Provenance: authors and learners of rollouts, from a node's messages to the selectors."""

import re

import msgspec
import pytest
from asgiref.sync import sync_to_async

from judge.models import Round, Season
from judge.selectors.seasons import task_choices
from swarm_protocol.messages import (
    Completion,
    Hardware,
    PublishRollouts,
    ReportTraining,
    RequestRollouts,
    Rollout,
    RolloutName,
)
from swarm_tasks.keyspace import Part
from swarm_web.board.leaderboard import read_row
from swarm_web.core.store import sync_redis
from swarm_web.core.verifiers import process_verifier
from swarm_web.gateway.handlers.hello import handle_hello
from swarm_web.gateway.handlers.training import publish_rollouts, report_training
from swarm_web.nodes.models import Node
from swarm_web.relay.models import ArchivedRollout
from swarm_web.relay.selectors.archive import recent_rollouts
from swarm_web.relay.tasks import keep_archive
from tests.factories import make_hello, make_rollout, make_round, make_score
from tests.factories import publish as publish_standings
from tests.gateway.conftest import Member
from tests.gateway.sessions import NOW, draw, session_of, write_collected


@pytest.fixture(autouse=True)
def forget_samples() -> None:
    for key in sync_redis().scan_iter("{relay}:sample*"):
        sync_redis().delete(key)


@pytest.fixture
def rollout(season: Season) -> Rollout:
    """A rollout of a training task with one completion without an answer and one right."""
    task = task_choices(season.tasks)[0]
    drawn = process_verifier().draw(
        key=b"k",
        part=Part.TRAINING,
        dataset=task.dataset,
        config=task.config,
        seed=season.seed,
        counter=0,
    )
    terms = re.findall(r"[-+]?\s*\d+", drawn.question.split(":", 1)[-1])
    total = sum(int(term.replace(" ", "")) for term in terms)
    texts = ("no idea", f"<answer>{total}</answer>")
    completions = [Completion(text=text, finish_reason="stop") for text in texts]
    base = make_rollout(season, rollout_id="r")
    return msgspec.structs.replace(base, task=drawn.spec, completions=completions)


def report(*names: tuple[str, str]) -> ReportTraining:
    return ReportTraining(
        id="t",
        step=1,
        training_reward=0.5,
        informative_share=0.5,
        local_used=4,
        external_used=len(names),
        used=[RolloutName(node, rollout) for node, rollout in names],
    )


async def share(rollout: Rollout, *, giver: Member, taker: Member) -> None:
    await publish_rollouts(session_of(giver), PublishRollouts(id="p", rollouts=[rollout]))
    await draw(session_of(taker), RequestRollouts(id="r", count=8))


async def learners(season: Season) -> list[str]:
    """Run the archive task and return the learners of the archived rollout, as pages show them."""
    await write_collected()
    await sync_to_async(keep_archive)()
    [row] = await sync_to_async(recent_rollouts)(season.pk, limit=5)
    assert row.learned_by == len(row.learners)
    return [learned.node.name for learned in row.learners]


async def test_node_that_reports_a_rollout_as_used_is_its_learner(
    season: Season, amber: Member, bold: Member, rollout: Rollout
) -> None:
    await share(rollout, giver=amber, taker=bold)
    await report_training(session_of(bold), report(("amber", "r")))
    assert await learners(season) == ["bold"]
    row = await ArchivedRollout.objects.select_related("author").aget()
    assert row.author.name == "amber"
    assert row.question
    assert [each["verdict"] for each in row.completions] == ["no_answer", "right"]


async def test_leaderboard_shows_how_often_others_used_a_nodes_rollouts(
    season: Season, amber: Member, bold: Member, rollout: Rollout
) -> None:
    await share(rollout, giver=amber, taker=bold)
    await report_training(session_of(bold), report(("amber", "r")))
    await learners(season)
    closed = Round.Phase.CLOSED
    judged = await sync_to_async(make_round)(season, phase=closed, questions=16)
    await sync_to_async(make_score)(judged, amber.node, correct=8)
    await sync_to_async(publish_standings)(season)
    row = await sync_to_async(read_row)(amber.node, season=season, window="season", now=NOW)
    assert row is not None
    assert row.used_by_others == 1


@pytest.mark.parametrize("hardware", [Hardware("GPU", 1 << 30), None])
async def test_hello_replaces_the_nodes_hardware(
    season: Season, amber: Member, hardware: Hardware | None
) -> None:
    await Node.objects.filter(pk=amber.node.pk).aupdate(hardware={"device": "old", "memory": 1})
    session = session_of(amber)
    session.greeted = False
    await handle_hello(session, msgspec.structs.replace(make_hello(), hardware=hardware))
    stored = (await Node.objects.aget(pk=amber.node.pk)).hardware
    assert stored == ({"device": "GPU", "memory": 1 << 30} if hardware else {})
