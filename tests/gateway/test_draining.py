"""Draining: a stopping web process loses nothing acknowledged and staggers the nodes' return."""

import asyncio
from dataclasses import dataclass
from datetime import timedelta

import msgspec
import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from judge.engine import Phase
from judge.models import Answer, Round, Season
from node_client.swarm.client import SwarmClient
from node_client.swarm.connection import CoordinatorConnection
from node_client.swarm.handshake import UnansweredError
from swarm_protocol.errors import ErrorCode
from swarm_protocol.messages import Refused, RequestRound, RoundState
from swarm_web.gateway import answering
from swarm_web.gateway.admission import admission
from swarm_web.gateway.draining import MESSAGE, Drain, find_spread
from swarm_web.gateway.session import shared_state
from swarm_web.relay.models import Contribution
from tests.factories import make_node, make_round, make_season, make_seat
from tests.gateway.conftest import Member
from tests.gateway.deploying import ActiveNode, deploy_during_work, web_process
from tests.gateway.sessions import answers_to
from tests.gateway.stalling import stalled
from tests.gateway.test_auth import denied
from tests.gateway.test_connection import ASK
from tests.node_client.shell_fakes import HELLO, Notebook
from tests.sockets import node_socket

NODES = 30


@dataclass(frozen=True)
class Site:
    """A season with an open round and nodes with seats in it."""

    season: Season
    round: Round
    nodes: list[ActiveNode]


@pytest.fixture
def active_site(transactional_db: None) -> Site:
    season = make_season()
    judge_round = make_round(season, questions=100, open_s=600)
    questions = [str(question.pk) for question in judge_round.questions.all()]
    nodes = []
    for place in range(NODES):
        name = f"node-{place}"
        node, token = make_node(name)
        make_seat(judge_round, node)
        nodes.append(ActiveNode(name, token, season, judge_round.number, list(questions)))
    return Site(season, judge_round, nodes)


@pytest.mark.slow
async def test_deployment_loses_nothing_that_was_acknowledged(active_site: Site) -> None:
    async with web_process() as process:
        await deploy_during_work(process, active_site.nodes)
    answers = Answer.objects.values_list("node__name", "question_id")
    stored = {(name, str(question)) async for name, question in answers}
    acknowledged = {
        (node.name, question) for node in active_site.nodes for question in node.answered
    }
    assert len(acknowledged) >= NODES
    assert stored == acknowledged
    rows = Contribution.objects.values_list("node__name", "published", "delivered", "step")
    assert {row async for row in rows} == {
        (node.name, node.published, node.sampled, node.step) for node in active_site.nodes
    }


@pytest.mark.slow
async def test_each_node_gets_a_different_retry_time(active_site: Site) -> None:
    async with web_process(GATEWAY_RETURN_PER_SECOND="10") as process:
        await deploy_during_work(process, active_site.nodes)
    refusals = [node.refusal for node in active_site.nodes if node.refusal]
    assert [node.code for node in active_site.nodes] == [1012] * NODES
    assert {refusal.code for refusal in refusals} == {ErrorCode.SERVER_RESTART}
    waits = sorted(refusal.retry_after or 0 for refusal in refusals)
    assert len(waits) == NODES
    # 30 nodes at 10 per second: one in each tenth of a second, up to rounding.
    assert all(abs(10 * wait - place - 0.5) < 0.52 for place, wait in enumerate(waits))


@pytest.mark.slow
async def test_client_reconnects_to_the_next_process_and_submits_pending_answers(
    active_site: Site,
) -> None:
    node = active_site.nodes[0]
    notebook = Notebook()
    async with web_process() as old:
        url = f"{old.url}/ws/node/"
        connection = CoordinatorConnection(
            url=url, token=node.token, hello=HELLO, listener=notebook
        )
        running = asyncio.create_task(connection.run())
        client = SwarmClient(connection)
        await client.wait_until_connected()
        await old.stop()
        left = next(link for link in notebook.links if link.phase == "waiting")
        assert (left.reason, left.planned) == (MESSAGE, True)
        with pytest.raises(UnansweredError):
            await client.submit_answers(node.round, answers_to(node.questions[:1]))
        async with web_process(port=old.port) as new:
            assert new.port == old.port
            await client.wait_until_connected()
            received = await client.submit_answers(node.round, answers_to(node.questions[:1]))
            assert received.accepted == node.questions[:1]
            running.cancel()
            await asyncio.wait([running])


async def test_handshake_during_draining_gets_503_with_retry_after(
    gateway: str, amber: Member
) -> None:
    await Drain().run()
    denial = await denied(f"{gateway}/ws/node/", {"Authorization": f"Bearer {amber.token}"})
    assert denial.response.status_code == 503
    assert b"server.restart" in denial.response.body
    assert int(denial.response.headers["Retry-After"]) >= 1


async def test_message_in_progress_is_answered_before_the_connection_closes(
    gateway: str, season: Season, amber: Member
) -> None:
    await sync_to_async(make_round)(season)
    async with node_socket(gateway, amber.token) as socket:
        async with stalled("judge_round") as stall:
            await socket.send(ASK)
            await stall.find_waiting()
            draining = asyncio.create_task(Drain().run())
            await asyncio.wait([draining], timeout=0.6)
            assert not draining.done()
            await stall.end()
            assert isinstance(await socket.hear(), RoundState)
        refusal = await socket.hear()
        assert isinstance(refusal, Refused)
        assert refusal.code == ErrorCode.SERVER_RESTART
        await draining
        assert await socket.close_code() == 1012


async def test_node_admitted_just_before_draining_is_disconnected(
    gateway: str, amber: Member, bold: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, may_finish = asyncio.Event(), asyncio.Event()

    async def hang(*_: object) -> RoundState:
        started.set()
        await may_finish.wait()
        return RoundState(reply_to=ASK.id, round=None, now="")

    hanging: dict[type[msgspec.Struct], answering.Handler] = {RequestRound: hang}
    monkeypatch.setattr(answering, "HANDLERS", answering.HANDLERS | hanging)
    async with node_socket(gateway, amber.token) as early:
        await early.send(ASK)
        await started.wait()
        # As if the node was admitted before draining.
        monkeypatch.setattr(admission(), "check", lambda *_: None)
        draining = asyncio.create_task(Drain().run())
        async with node_socket(gateway, bold.token, greet=False) as late:
            refusal = await late.hear()
            assert isinstance(refusal, Refused)
            assert refusal.code == ErrorCode.SERVER_RESTART
        may_finish.set()
        await draining


async def test_return_window_is_short_in_an_open_round(
    season: Season,
) -> None:
    assert await find_spread(10_000) == 50
    shared_state().round.drop()
    await sync_to_async(make_round)(season)
    assert await find_spread(10_000) == 5


async def test_return_window_is_short_if_a_round_opens_soon_while_another_is_scored(
    season: Season,
) -> None:
    await sync_to_async(make_round)(season, phase=Phase.SCORING)
    assert await find_spread(10_000) == 50
    shared_state().next_opening.drop()
    soon = timezone.now() + timedelta(seconds=30)
    await sync_to_async(make_round)(season, phase=Phase.SCHEDULED, opens_at=soon)
    assert await find_spread(10_000) == 5
