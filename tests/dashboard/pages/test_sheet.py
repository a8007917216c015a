"""Test the sheet of a closed round: marks by node and question in pages, and the replay."""

import re
from datetime import timedelta

import pytest
from django.test import Client

from judge.models import Answer, Round, Season
from swarm_web.dashboard.reports import answers as report
from swarm_web.dashboard.reports.answers import AnswerMark, AnswerOutcome
from swarm_web.nodes.models import Node
from tests.factories import make_answer, make_node, make_round, make_score, make_seat


@pytest.fixture
def judge_round(judged: list[Node], season: Season) -> Round:
    return season.rounds.latest("number")


@pytest.fixture
def two_per_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "PAGE_NODES", 2)


def read(client: Client, judge_round: Round, query: str = "") -> str:
    return client.get(judge_round.get_absolute_url() + query).content.decode()


def heat_of(html: str) -> list[tuple[str, list[str]]]:
    """Return the heat map: each node with the classes of its cells."""
    table = html.split('class="heat"')[1].split("<tfoot>")[0]
    rows = re.findall(r"<tr><th scope=\"row\"><a [^>]*>([^<]+)</a></th>(.*?)</tr>", table, re.S)
    return [(node, re.findall(r'<td class="(\w+)"', cells)) for node, cells in rows]


def test_each_node_has_a_cell_for_each_question(
    judge_round: Round, judged: list[Node], client: Client
) -> None:
    first = judge_round.questions.get(position=1)
    Answer.objects.filter(question=first, node=judged[2]).update(score=None, solved=None)
    heat = heat_of(read(client, judge_round))
    assert [node for node, _ in heat] == [node.name for node in judged]
    marks = [cells[:3] for _, cells in heat]
    assert marks == [
        ["right", "right", "none"],
        ["wrong", "wrong", "none"],
        ["ungraded", "right", "none"],
    ]


@pytest.mark.parametrize(
    ("mark", "outcome", "sign", "words"),
    [
        (AnswerMark(True, "right", second=1.0), AnswerOutcome.RIGHT, "✓", "right"),
        (AnswerMark(False, "partial", second=1.0), AnswerOutcome.WRONG, "◐", "partly right"),
        (AnswerMark(False, "no_answer", second=1.0), AnswerOutcome.WRONG, "∅", "no <answer> tags"),
        (AnswerMark(False, "wrong", second=1.0), AnswerOutcome.WRONG, "✕", "wrong"),
        (AnswerMark(None, second=1.0), AnswerOutcome.UNGRADED, "?", "not graded"),
        (AnswerMark(None), AnswerOutcome.NONE, "·", "no answer received"),
    ],
)
def test_mark_has_a_sign_and_words(
    mark: AnswerMark, outcome: AnswerOutcome, sign: str, words: str
) -> None:
    assert (mark.outcome, mark.sign, mark.words) == (outcome, sign, words)


def test_pages_follow_the_order_of_scores_with_ties_and_absent_nodes(
    season: Season, client: Client, two_per_page: None
) -> None:
    judge_round = make_round(season, phase=Round.Phase.CLOSED)
    nodes = [make_node(name)[0] for name in ("amber", "birch", "coral", "dune", "elm")]
    for node, correct in zip(nodes[:4], (5, 9, 5, 5), strict=True):
        make_score(judge_round, node, correct=correct)
    judge_round.scores.create(node=nodes[4], arm="swarm", status="absent", reason="not_offered")
    for node in nodes:
        make_seat(judge_round, node)
    pages, query = [], ""
    for _ in range(3):
        html = read(client, judge_round, query)
        pages.append([node for node, _ in heat_of(html)])
        query = "".join(re.findall(r'<a rel="next" href="(\?[^"]*)"', html)[:1])
    assert pages == [["birch", "amber"], ["coral", "dune"], ["elm"]]
    assert "5–5 of 5 nodes" in html
    assert query == ""


def test_cursor_with_an_unknown_node_returns_400(judge_round: Round, client: Client) -> None:
    refusal = client.get(judge_round.get_absolute_url() + "?after=nobody")
    assert (refusal.status_code, refusal.json()["code"]) == (400, "query.after")


def test_replay_contains_the_time_of_each_answer(
    judge_round: Round, judged: list[Node], client: Client
) -> None:
    late = Answer.objects.get(question__position=2, question__round=judge_round, node=judged[1])
    late.received_at = judge_round.opens_at + timedelta(seconds=7.25)
    late.save()
    body = client.get(f"/rounds/{judge_round.number}/replay.json").json()
    assert body["nodes"] == [node.name for node in judged]
    assert body["seconds"] == 8
    assert [1, 1, 7.25] in body["answers"]
    assert len(body["answers"]) == 6


def test_round_page_truncates_answers_and_question_page_does_not(
    judge_round: Round, client: Client
) -> None:
    Answer.objects.update(text="x" * 16_384)
    longest = max(re.findall("x+", read(client, judge_round)), key=len)
    assert len(longest) == 599
    whole = client.get(f"{judge_round.get_absolute_url()}questions/1/").content.decode()
    assert "x" * 16_384 in whole


def test_round_page_quotes_only_the_answers_of_the_first_nodes(
    season: Season, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "QUOTED_NODES", 1)
    judge_round = make_round(season, phase=Round.Phase.CLOSED, questions=1)
    for name, correct in (("amber", 9), ("birch", 8)):
        node, _ = make_node(name)
        make_score(judge_round, node, correct=correct)
        make_answer(judge_round.questions.get(position=1), node, solved=True, text=f"by {name}")
    html = read(client, judge_round)
    assert "by amber" in html
    assert "by birch" not in html
    assert f"/rounds/{judge_round.number}/questions/1/" in html
