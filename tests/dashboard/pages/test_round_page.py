"""A closed round's page: scores, how long answers took, why results are low, what was decided."""

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


def test_it_shows_when_a_node_was_done_and_when_each_answer_came(
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
def test_each_reason_says_what_its_owner_can_do(
    judge_round: Round, client: Client, reason: Score.Reason
) -> None:
    node, _ = make_node()
    Score.objects.create(round=judge_round, node=node, arm="swarm", status="absent", reason=reason)
    page, told = read(client, judge_round), client.get(f"/api/v1/nodes/{node.name}").json()
    assert advise(reason)
    assert advise(reason) in page
    assert told["scores"][0]["advice"] == advise(reason)


def test_a_quarantined_node_leads_no_round_and_is_marked(
    judge_round: Round, judged: list[Node], client: Client
) -> None:
    assert f'was led by <span class="name">{judged[0].name}</span>' in read(client, judge_round)
    quarantine_node(judged[0], reason="copies", actor=None, now=timezone.now())
    html = read(client, judge_round)
    assert f'was led by <span class="name">{judged[1].name}</span>: 15 of 16 solved' in html
    assert "Quarantined: not ranked." in html


def test_those_who_are_tied_lead_together(
    judge_round: Round, judged: list[Node], client: Client
) -> None:
    judge_round.scores.update(score=0.5)
    assert f"was led by {len(judged)} nodes with .500 each" in read(client, judge_round)


def test_a_round_without_a_right_answer_was_led_by_nobody(
    judge_round: Round, client: Client
) -> None:
    judge_round.scores.update(score=0, correct=0)
    html = read(client, judge_round)
    assert "closed with no question solved" in html
    assert "was led by" not in html


def test_it_says_how_to_check_it(judge_round: Round, client: Client) -> None:
    html = read(client, judge_round)
    assert "Verify it yourself" in html
    assert f"swarm-node verify-round http://localhost:8000 {judge_round.number}" in html


def test_the_api_tells_each_nodes_cells(judge_round: Round, client: Client) -> None:
    told = client.get(f"/api/v1/rounds/{judge_round.number}").json()
    second = told["scores"][1]
    assert (second["correct"], second["n"], second["cells"]) == (15, 16, {"chain_sum": [15, 16]})


def test_the_operators_decision_is_told_without_a_name(judge_round: Round, client: Client) -> None:
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
    told = client.get(f"/api/v1/rounds/{judge_round.number}").json()
    (ruling,) = told["rulings"]
    assert ruling["action"] == "recompute"
    assert ruling["changes"] == {"scores_changed": 3}
    assert "grace-operator" not in html + str(told)
