"""One question of a closed round: everybody's answers, by outcome, by node, a page at a time."""

import re

import pytest
from django.test import Client

from judge.models import Answer, Question, Round, Season
from swarm_web.dashboard.reports import question as report
from tests.factories import make_answer, make_node, make_round, make_score


@pytest.fixture
def question(season: Season) -> Question:
    """A question with answers of amber (right), birch (wrong), bold (right), coral (ungraded)."""
    judge_round = make_round(season, phase=Round.Phase.CLOSED, questions=2)
    question = judge_round.questions.get(position=1)
    for name, solved in (("amber", True), ("birch", False), ("bold", True), ("coral", False)):
        node, _ = make_node(name)
        make_answer(question, node, solved=solved)
        make_score(judge_round, node, correct=int(solved), n=2)
    Answer.objects.filter(node__name="coral").update(score=None, solved=None, verdict="")
    return question


def names_in(client: Client, question: Question, query: str = "") -> list[str]:
    path = f"/rounds/{question.round.number}/questions/{question.position}/"
    html = client.get(path + query).content.decode()
    return re.findall(r'<li><a href="/nodes/([a-z]+)/"', html)


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("", ["amber", "birch", "bold", "coral"]),
        ("?outcome=right", ["amber", "bold"]),
        ("?outcome=wrong", ["birch"]),
        ("?outcome=unscored", ["coral"]),
        ("?node=B", ["amber", "birch", "bold"]),
        ("?outcome=right&node=bol", ["bold"]),
        ("?outcome=right&after=amber", ["bold"]),
    ],
)
def test_answers_are_filtered_by_the_query(
    question: Question, client: Client, query: str, names: list[str]
) -> None:
    assert names_in(client, question, query) == names


def test_pages_keep_the_filter(
    question: Question, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "PAGE_ANSWERS", 1)
    path = f"/rounds/{question.round.number}/questions/1/?outcome=right"
    html = client.get(path).content.decode()
    (query,) = re.findall(r'<a rel="next" href="(\?[^"]*)"', html)
    assert names_in(client, question, query.replace("&amp;", "&")) == ["bold"]


def test_it_says_how_many_solved_it(question: Question, client: Client) -> None:
    html = client.get(f"/rounds/{question.round.number}/questions/1/").content.decode()
    assert "Question 1 was solved by 2 of 4 nodes" in html


def test_there_is_no_other_question(question: Question, client: Client) -> None:
    assert client.get(f"/rounds/{question.round.number}/questions/9/").status_code == 404


@pytest.mark.parametrize("query", ["outcome=odd", "after=nobody"])
def test_a_filter_that_does_not_exist_is_refused(
    question: Question, client: Client, query: str
) -> None:
    refusal = client.get(f"/rounds/{question.round.number}/questions/1/?{query}")
    assert refusal.status_code == 400
    assert refusal.json()["code"].startswith("query.")
