"""The terminal panel and the node's page show the same figures and states."""

import html
import io
import re
from collections import Counter
from dataclasses import replace
from typing import get_args

import pytest
from asgiref.sync import sync_to_async
from django.test import AsyncClient
from django.utils import timezone
from rich.console import Console

from judge.models import Round, Season
from judge.selectors.rounds import describe_round
from judge.services.oversight import quarantine_node
from judge.services.seasons import end_season
from node_client.display.health import State, assess_health
from node_client.display.panel import render
from node_client.display.view import NodeView
from node_client.learning.report import TrainingTotals
from node_client.swarm.connection import ConnectionState
from swarm_protocol.messages import ReportTraining, RequestStanding, RolloutName
from swarm_web.gateway.handlers.standing import get_standing
from swarm_web.nodes.models import Node
from swarm_web.relay.services.crediting import book_credits
from tests.factories import (
    make_answer,
    make_node,
    make_rollout,
    make_round,
    make_score,
    make_seat,
    publish,
)
from tests.gateway.conftest import Member
from tests.gateway.sessions import NOW, session_of
from tests.node_client.panel_views import full_view, report
from tests.relay.sharing import publish_rollouts, record_training, sample_rollouts

ASK = RequestStanding(id="s")
SHOWN_AT = timezone.now()


@pytest.fixture
def closed(season: Season, amber: Member, bold: Member) -> Round:
    """A closed round: amber solved 12 of 16 questions, and two others fewer."""
    Node.objects.update(last_seen=timezone.now())
    judged = make_round(season, phase=Round.Phase.CLOSED, questions=16)
    make_score(judged, amber.node, correct=12)
    make_score(judged, bold.node, correct=7)
    make_score(judged, make_node("calm")[0], correct=2)
    publish(season)
    return judged


async def view_of(member: Member) -> NodeView:
    """Return the view of the client's panel, with the standing that the client requests."""
    view = full_view()
    view.connection, view.node = ConnectionState("connected"), member.node.name
    view.show_standing(await get_standing(session_of(member), ASK))
    return view


async def read_page(node: Node) -> str:
    """Return the text of the node's page, without tags."""
    response = await AsyncClient().get(node.get_absolute_url())
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", response.content.decode())).split())


def draw(view: NodeView) -> str:
    console = Console(file=io.StringIO(), width=200, color_system=None)
    console.print(render(view, now=SHOWN_AT, clock=0))
    assert isinstance(console.file, io.StringIO)
    return " ".join(console.file.getvalue().replace("│", " ").split())


async def exchange(season: Season, giver: Node, taker: Node) -> None:
    """Draw the giver's rollouts twice for the taker, and report the first draw as used."""
    rollouts = [make_rollout(season, rollout_id=f"{giver}-{n}") for n in range(5)]
    await publish_rollouts(giver, season_id=season.pk, rollouts=rollouts, now=NOW)
    drawn = [await sample_rollouts(taker, season_id=season.pk, count=2, now=NOW) for _ in range(2)]
    training_report = ReportTraining(
        id="t",
        step=1,
        training_reward=0,
        informative_share=0,
        local_used=0,
        external_used=2,
        used=[RolloutName(external.node, external.rollout.id) for external in drawn[0]],
    )
    await record_training(taker, season_id=season.pk, report=training_report, now=NOW)
    await sync_to_async(book_credits)()


async def test_every_figure_of_the_panel_is_on_the_nodes_page(
    season: Season, closed: Round, amber: Member, bold: Member
) -> None:
    await exchange(season, amber.node, bold.node)
    await exchange(season, bold.node, amber.node)
    totals = TrainingTotals(
        local_used=40, external_used=3, external_dropped=Counter(not_informative=17)
    )
    step_report = replace(report(reward=0.7925), informative_share=0.625)
    training_report = ReportTraining(
        id="t",
        step=step_report.step,
        training_reward=step_report.training_reward,
        informative_share=step_report.informative_share,
        local_used=totals.local_used,
        external_used=totals.external_used,
        external_dropped=dict(totals.external_dropped),
    )
    await record_training(amber.node, season_id=season.pk, report=training_report, now=NOW)
    view = await view_of(amber)
    view.show_step(step_report, totals)
    panel, page = draw(view), await read_page(amber.node)
    assert view.standing is not None
    assert view.standing.interval is not None
    low, high = (f"{bound:.3f}" for bound in view.standing.interval)
    for in_panel, on_page in (
        ("score 0.750", "Judge score .750"),
        ("rank 1–3 of 3", "It ranks 1–3 of 3."),
        (f"interval {low}–{high}, n = 16", f"interval {low[1:]}–{high[1:]}, n = 16"),
        ("from 1 round", "Rounds answered 1"),
        ("step 1,234", "Step 1234"),
        ("training reward 0.792", "Training reward .792"),
        ("informative 62%", "Informative share 62 %"),
        ("5 rollouts published", "Shared 5"),
        ("delivered to others 4 times", "Delivered to others 4"),
        ("used by others 2 times", "Used by others 2"),
        ("3 external used this season", "External rollouts used 3"),
        ("not informative 17", "Dropped: not informative 17"),
    ):
        assert in_panel in panel
        assert on_page in page


async def compare(member: Member, view: NodeView, *, state: State, text: str) -> None:
    """Check that panel and page show the same state of the node."""
    health = assess_health(view, now=SHOWN_AT, clock=0)
    assert (health.state, health.text) == (state, text)
    page = await read_page(member.node)
    assert f"{state} {member.node.name} {text}" in page


async def test_panel_and_page_show_a_healthy_node(
    closed: Round, amber: Member, bold: Member
) -> None:
    await compare(amber, await view_of(amber), state="working", text="is healthy.")


async def test_panel_and_page_show_a_node_waiting_for_its_first_round(
    season: Season, amber: Member
) -> None:
    await Node.objects.all().aupdate(last_seen=timezone.now())
    view = await view_of(amber)
    view.round = None
    text = "is connected and waiting for its first round."
    await compare(amber, view, state="waiting", text=text)


async def test_panel_and_page_show_a_node_answering_its_first_round(
    season: Season, amber: Member
) -> None:
    await Node.objects.all().aupdate(last_seen=timezone.now())
    opened = await sync_to_async(make_round)(season, questions=16)
    await sync_to_async(make_seat)(opened, amber.node)
    async for question in opened.questions.filter(position__lte=3):
        await sync_to_async(make_answer)(question, amber.node, solved=True)
    view = await view_of(amber)
    view.round = None
    view.answered.clear()  # of a round that may have the same number
    view.show_round(await sync_to_async(describe_round)(opened))
    view.show_answers(opened.number, 3)
    text = "is connected and answering its first round."
    await compare(amber, view, state="working", text=text)
    expected = f"It has answered 3 of 16 questions of round {opened.number}."
    assert assess_health(view, now=SHOWN_AT, clock=0).reason == expected
    assert expected in await read_page(amber.node)


async def test_panel_and_page_show_a_node_without_a_season(season: Season, amber: Member) -> None:
    await Node.objects.all().aupdate(last_seen=timezone.now())
    view = await view_of(amber)
    await sync_to_async(end_season)(season, now=timezone.now())
    view.season = None
    await compare(amber, view, state="waiting", text="is connected and training alone.")


async def test_panel_and_page_show_a_node_with_too_few_questions(
    season: Season, amber: Member
) -> None:
    await Node.objects.all().aupdate(last_seen=timezone.now())
    judged = await sync_to_async(make_round)(season, phase=Round.Phase.CLOSED)
    await sync_to_async(make_score)(judged, amber.node, correct=8, n=8)
    await sync_to_async(publish)(season)
    text = "is healthy but not ranked yet."
    await compare(amber, await view_of(amber), state="working", text=text)


async def test_panel_and_page_show_a_quarantined_node(
    season: Season, closed: Round, amber: Member
) -> None:
    await sync_to_async(quarantine_node)(
        amber.node, reason="copied", actor=None, now=timezone.now()
    )
    await sync_to_async(publish)(season)
    await compare(amber, await view_of(amber), state="needs attention", text="is quarantined.")


def test_states_of_the_panel_are_those_of_the_page() -> None:
    assert get_args(State) == ("working", "waiting", "needs attention")
