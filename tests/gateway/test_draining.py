"""A web process that is stopped loses nothing of what it took, and sends its nodes away in turn."""

import asyncio
from dataclasses import dataclass

import msgspec
import pytest
from asgiref.sync import sync_to_async

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
from tests.gateway.deploying import Diligent, deploy_during_work, web_process
from tests.gateway.sessions import answers_to
from tests.gateway.stalling import stalled
from tests.gateway.test_auth import denied
from tests.gateway.test_connection import ASK
from tests.node_client.shell_fakes import HELLO, Notebook
from tests.sockets import node_socket

NODES = 30


@dataclass(frozen=True)
class Site:
    """A season with an open round, and nodes that take part in it."""

    season: Season
    round: Round
    nodes: list[Diligent]


@pytest.fixture
def at_work(transactional_db: None) -> Site:
    season = make_season()
    judge_round = make_round(season, questions=100, open_s=600)
    questions = [str(question.pk) for question in judge_round.questions.all()]
    nodes = []
    for place in range(NODES):
        name = f"node-{place}"
        node, token = make_node(name)
        make_seat(judge_round, node)
        nodes.append(Diligent(name, token, season, judge_round.number, list(questions)))
    return Site(season, judge_round, nodes)


@pytest.mark.slow
async def test_a_deployment_loses_nothing_that_was_receipted(at_work: Site) -> None:
    async with web_process() as process:
        await deploy_during_work(process, at_work.nodes)
    answers = Answer.objects.values_list("node__name", "question_id")
    stored = {(name, str(question)) async for name, question in answers}
    receipted = {(node.name, question) for node in at_work.nodes for question in node.answered}
    assert len(receipted) >= NODES
    assert stored == receipted
    rows = Contribution.objects.values_list("node__name", "published", "delivered", "step")
    assert {row async for row in rows} == {
        (node.name, node.published, node.sampled, node.step) for node in at_work.nodes
    }


@pytest.mark.slow
async def test_each_node_gets_its_own_time_to_come_back(at_work: Site) -> None:
    async with web_process(GATEWAY_RETURN_PER_SECOND="10") as process:
        await deploy_during_work(process, at_work.nodes)
    farewells = [node.farewell for node in at_work.nodes if node.farewell]
    assert [node.code for node in at_work.nodes] == [1012] * NODES
    assert {farewell.code for farewell in farewells} == {ErrorCode.SERVER_RESTART}
    waits = sorted(farewell.retry_after or 0 for farewell in farewells)
    assert len(waits) == NODES
    # 30 nodes at 10 a second: one in each tenth of a second, up to rounding.
    assert all(abs(10 * wait - place - 0.5) < 0.52 for place, wait in enumerate(waits))


@pytest.mark.slow
async def test_a_clients_node_comes_to_the_next_process_and_hands_in_what_it_owes(
    at_work: Site,
) -> None:
    node = at_work.nodes[0]
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
            await client.submit(node.round, answers_to(node.questions[:1]))
        async with web_process(port=old.port) as new:
            assert new.port == old.port
            await client.wait_until_connected()
            received = await client.submit(node.round, answers_to(node.questions[:1]))
            assert received.accepted == node.questions[:1]
            running.cancel()
            await asyncio.wait([running])


async def test_who_comes_while_the_process_stops_is_told_when_to_come_again(
    gateway: str, amber: Member
) -> None:
    await Drain().run()
    denial = await denied(f"{gateway}/ws/node/", {"Authorization": f"Bearer {amber.token}"})
    assert denial.response.status_code == 503
    assert b"server.restart" in denial.response.body
    assert int(denial.response.headers["Retry-After"]) >= 1


async def test_a_message_that_is_being_handled_is_answered_first(
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
        farewell = await socket.hear()
        assert isinstance(farewell, Refused)
        assert farewell.code == ErrorCode.SERVER_RESTART
        await draining
        assert await socket.close_code() == 1012


async def test_a_node_that_was_just_let_in_is_sent_away_too(
    gateway: str, amber: Member, bold: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, may_go_on = asyncio.Event(), asyncio.Event()

    async def hang(*_: object) -> RoundState:
        asked.set()
        await may_go_on.wait()
        return RoundState(reply_to=ASK.id, round=None, now="")

    hanging: dict[type[msgspec.Struct], answering.Handler] = {RequestRound: hang}
    monkeypatch.setattr(answering, "HANDLERS", answering.HANDLERS | hanging)
    async with node_socket(gateway, amber.token) as early:
        await early.send(ASK)
        await asked.wait()
        monkeypatch.setattr(admission(), "check", lambda *_: None)  # It had passed before.
        draining = asyncio.create_task(Drain().run())
        async with node_socket(gateway, bold.token, greet=False) as late:
            farewell = await late.hear()
            assert isinstance(farewell, Refused)
            assert farewell.code == ErrorCode.SERVER_RESTART
        may_go_on.set()
        await draining


async def test_in_an_open_round_nodes_come_back_as_soon_as_the_judge_counts_on(
    season: Season,
) -> None:
    assert await find_spread(shared_state(), nodes=10_000) == 50
    shared_state().round.drop()
    await sync_to_async(make_round)(season)
    assert await find_spread(shared_state(), nodes=10_000) == 5
