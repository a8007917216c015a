"""Test the page of a question of a closed round: answers by outcome and node, in pages."""

import re

import pytest
from django.test import Client

from judge.models import Answer, Question, Round, Season
from swarm_web.dashboard.reports import answers as report
from tests.factories import make_answer, make_node, make_round, make_score, make_scores


@pytest.fixture
def question(season: Season) -> Question:
    """A question with answers of amber (right), birch (wrong), bold (right), coral (ungraded)."""
    judge_round = make_round(season, phase=Round.Phase.CLOSED, questions=2)
    question = judge_round.questions.get(position=1)
    plan = {"amber": True, "birch": False, "bold": True, "coral": False}
    nodes = {}
    for name, solved in plan.items():
        nodes[name], _ = make_node(name)
        make_answer(question, nodes[name], solved=solved)
    make_scores(judge_round, {nodes[name]: int(solved) for name, solved in plan.items()}, n=2)
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


def test_link_to_the_next_page_preserves_the_filter(
    question: Question, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "PAGE_ANSWERS", 1)
    path = f"/rounds/{question.round.number}/questions/1/?outcome=right"
    html = client.get(path).content.decode()
    (query,) = re.findall(r'<a rel="next" href="(\?[^"]*)"', html)
    assert names_in(client, question, query.replace("&amp;", "&")) == ["bold"]


def test_heading_shows_how_many_nodes_solved_it(question: Question, client: Client) -> None:
    html = client.get(f"/rounds/{question.round.number}/questions/1/").content.decode()
    assert "Question 1 was solved by 2 of 4 nodes" in html


def test_unknown_question_returns_404(question: Question, client: Client) -> None:
    assert client.get(f"/rounds/{question.round.number}/questions/9/").status_code == 404


@pytest.mark.parametrize("query", ["outcome=odd", "after=nobody"])
def test_invalid_filter_returns_400(question: Question, client: Client, query: str) -> None:
    refusal = client.get(f"/rounds/{question.round.number}/questions/1/?{query}")
    assert refusal.status_code == 400
    assert refusal.json()["code"].startswith("query.")


@pytest.fixture
def half_graded(season: Season) -> Round:
    """A round of three questions; the second counts for one of its two nodes, the third for none.

    All counted answers are right.
    """
    judge_round = make_round(season, phase=Round.Phase.CLOSED, questions=3)
    make_score(judge_round, make_node("amber")[0], correct=2, n=2)
    make_score(judge_round, make_node("birch")[0], correct=1, n=1)
    return judge_round


def test_ungraded_answer_is_not_counted_as_wrong(half_graded: Round, client: Client) -> None:
    html = client.get(half_graded.get_absolute_url()).content.decode()
    tallies = re.findall(r'<span class="tally num">([^<]*)</span>', html)
    assert tallies == ["2 of 2 right", "1 of 1 right", "not graded"]
    (shares,) = re.findall(r"<tfoot>.*</tfoot>", html)
    assert re.findall(r'<td class="num">([^<]*)</td>', shares) == ["100\u202f%", "100\u202f%", "–"]


def test_page_of_an_ungraded_question_explains_it(half_graded: Round, client: Client) -> None:
    html = client.get(f"/rounds/{half_graded.number}/questions/3/").content.decode()
    assert "No answer to question 3 was graded" in html


def test_api_has_the_same_counts_as_the_pages(half_graded: Round, client: Client) -> None:
    path = f"/api/v1/rounds/{half_graded.number}"
    listed = client.get(f"{path}/questions").json()["items"]
    counts = [(question["solved"], question["counted"], question["seated"]) for question in listed]
    assert counts == [(2, 2, 2), (1, 1, 2), (0, 0, 2)]
    assert client.get(path).json()["questions"] == listed
