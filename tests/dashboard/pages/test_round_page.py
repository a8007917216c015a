"""Test the page of a closed round: scores, latencies, reasons, and rulings."""

import copy

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from judge.models import Answer, Round, Ruling, Score
from judge.services.oversight import quarantine_node
from swarm_web.dashboard.reports.round import advise
from swarm_web.nodes.models import Node
from tests.factories import make_node


@pytest.fixture
def judged(judged_once: list[Node], db: None) -> list[Node]:
    return copy.deepcopy(judged_once)


@pytest.fixture
def judge_round(judged: list[Node]) -> Round:
    return Round.objects.latest("number")


def read(client: Client, judge_round: Round) -> str:
    return client.get(judge_round.get_absolute_url()).content.decode()


def test_page_shows_the_latency_of_each_answer_and_of_the_last_one(
    judge_round: Round, judged: list[Node], client: Client
) -> None:
    for took, answer in enumerate(Answer.objects.filter(node=judged[0]), start=1):
        Answer.objects.filter(pk=answer.pk).update(latency_ms=1100 * took)
    html = read(client, judge_round)
    last = max(Answer.objects.filter(node=judged[0], question__round=judge_round), key=latency)
    assert f'<td class="num">{latency(last) / 1000:.1f}\u202fs</td>' in html
    assert f"after {latency(last) / 1000:.1f}\u202fs" in html


def latency(answer: Answer) -> int:
    assert answer.latency_ms is not None
    return answer.latency_ms


@pytest.mark.parametrize("reason", [r for r in Score.Reason if r])
def test_each_reason_has_advice_for_the_owner(
    judge_round: Round, client: Client, reason: Score.Reason
) -> None:
    node, _ = make_node()
    Score.objects.create(round=judge_round, node=node, arm="swarm", status="absent", reason=reason)
    page, node_data = read(client, judge_round), client.get(f"/api/v1/nodes/{node.name}").json()
    assert advise(reason)
    assert advise(reason) in page
    assert node_data["scores"][0]["advice"] == advise(reason)


def test_quarantined_node_is_marked_and_not_named_as_leader(
    judge_round: Round, judged: list[Node], client: Client
) -> None:
    assert f'was led by <span class="name">{judged[0].name}</span>' in read(client, judge_round)
    quarantine_node(judged[0], reason="copies", actor=None, now=timezone.now())
    html = read(client, judge_round)
    assert f'was led by <span class="name">{judged[1].name}</span>: 15 of 16 solved' in html
    assert "Quarantined: not ranked." in html


def test_tied_nodes_are_counted_as_leaders(
    judge_round: Round, judged: list[Node], client: Client
) -> None:
    judge_round.scores.update(score=0.5)
    assert f"was led by {len(judged)} nodes with .500 each" in read(client, judge_round)


def test_round_without_right_answers_has_no_leader(judge_round: Round, client: Client) -> None:
    judge_round.scores.update(score=0, correct=0)
    html = read(client, judge_round)
    assert "closed with no question solved" in html
    assert "was led by" not in html


def test_page_shows_how_to_verify_the_round(judge_round: Round, client: Client) -> None:
    html = read(client, judge_round)
    assert "Verify it yourself" in html
    assert f"swarm-node verify-round http://localhost:8000 {judge_round.number}" in html


def test_api_contains_the_cells_of_each_node(judge_round: Round, client: Client) -> None:
    content = client.get(f"/api/v1/rounds/{judge_round.number}").json()
    second = content["scores"][1]
    assert (second["correct"], second["n"], second["cells"]) == (15, 16, {"chain_sum": [15, 16]})


def test_ruling_is_shown_without_the_name_of_the_operator(
    judge_round: Round, client: Client
) -> None:
    operator = User.objects.create_user("grace-operator")
    Ruling.objects.create(
        action=Ruling.Action.RECOMPUTE,
        round=judge_round,
        actor=operator,
        reason="the verifier was mended",
        changes={"scores_changed": 3},
        made_at=timezone.now(),
    )
    html = read(client, judge_round)
    assert "The operator had this round&#x27;s answers regraded." in html
    assert "the verifier was mended" in html
    assert "scores changed: 3" in html
    content = client.get(f"/api/v1/rounds/{judge_round.number}").json()
    (ruling,) = content["rulings"]
    assert ruling["action"] == "recompute"
    assert ruling["changes"] == {"scores_changed": 3}
    assert "grace-operator" not in html + str(content)
