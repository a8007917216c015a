"""Test the pages of tasks: questions, difficulty, pass rates and informative share."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from judge.engine import Phase
from judge.models import Question, Round, Season
from swarm_web.nodes.models import Node
from tests.dashboard.conftest import judge_nodes
from tests.factories import make_archived_rollout, make_node, make_round

DATASET = "chain_sum"
PAGE = f"/tasks/{DATASET}/"


def read(client: Client, path: str) -> str:
    response = client.get(path)
    assert response.status_code == 200
    return response.content.decode()


def test_each_dataset_has_a_card_with_its_share_of_the_questions(
    season: Season, client: Client
) -> None:
    season.tasks = [
        {"dataset": DATASET, "config": {}, "weight": 3.0},
        {"dataset": "spell_backward", "config": {}, "weight": 1.0},
    ]
    season.save()
    html = read(client, "/tasks/")
    assert html.index(PAGE) < html.index("/tasks/spell_backward/")
    assert "75\u202f%" in html
    assert "25\u202f%" in html


def test_configuration_that_is_no_longer_allowed_has_no_levels(
    season: Season, client: Client
) -> None:
    season.tasks = [{"dataset": "gcd", "config": {"max_value": "x"}, "weight": 1.0}]
    season.save()
    for page in ("/tasks/", "/tasks/gcd/", "/tasks/gcd/figure.json"):
        assert read(client, page)


def test_pass_rates_cover_the_closed_rounds(
    season: Season, judged: list[Node], client: Client
) -> None:
    # Of 16 questions in each of two rounds the three nodes solve 16, 15 and 14.
    for page in ("/tasks/", PAGE):
        html = read(client, page)
        assert ".938" in html
        assert "n = 96" in html


@pytest.mark.parametrize("phase", [Phase.SCHEDULED, Phase.OPEN, Phase.SCORING])
def test_questions_of_an_unclosed_round_are_not_shown(
    season: Season, judged: list[Node], client: Client, phase: Phase
) -> None:
    sealed = make_round(season, phase=phase, questions=2)
    Question.objects.filter(round=sealed).update(prompt="the sealed one")
    for page in ("/tasks/", PAGE, f"{PAGE}figure.json"):
        assert "the sealed one" not in read(client, page)


def test_void_round_is_omitted(season: Season, judged: list[Node], client: Client) -> None:
    Question.objects.update(prompt="the void one")
    Round.objects.update(phase=Round.Phase.VOID)
    for page in ("/tasks/", PAGE):
        html = read(client, page)
        assert "the void one" not in html
        assert "no round has closed yet" in html


def test_example_is_the_newest_revealed_question(
    season: Season, judged: list[Node], client: Client
) -> None:
    latest = season.rounds.latest("number")
    Question.objects.filter(round=latest, position=1).update(prompt="<b>the newest</b>")
    assert "&lt;b&gt;the newest&lt;/b&gt;" in read(client, "/tasks/")


def test_informative_share_covers_the_checked_archived_rollouts(
    season: Season, client: Client
) -> None:
    author = make_node()[0]
    for solved in (0, 1, 2, 1, None):
        make_archived_rollout(season, author, solved=solved, dataset=DATASET)
    html = read(client, "/tasks/")
    assert "50\u202f%" in html
    assert "n = 4" in html


def test_hardest_questions_are_those_solved_by_the_fewest_nodes(
    season: Season, judged: list[Node], client: Client
) -> None:
    Question.objects.filter(position=16).update(prompt="the hard one")
    Question.objects.filter(position=14).update(prompt="the easy one")
    html = read(client, PAGE)
    hardest = html[html.index("Hardest") : html.index("Easiest")]
    assert "the hard one" in hardest
    assert "1 of 3 right" in hardest
    assert "the easy one" not in hardest


def test_figure_has_the_rows_of_the_table(
    season: Season, judged: list[Node], client: Client
) -> None:
    figure = client.get(f"{PAGE}figure.json").json()
    (line,) = (drawn for drawn in figure["data"] if drawn.get("fill") is None)
    assert line["customdata"][-1][-1] == 96
    html = read(client, PAGE)
    assert all(f"{rate:.3f}".removeprefix("0") in html for rate in line["y"])


@pytest.mark.parametrize("path", ["/tasks/none/", "/tasks/none/figure.json"])
def test_dataset_outside_the_season_returns_404(season: Season, client: Client, path: str) -> None:
    assert client.get(path).status_code == 404


def test_page_before_the_first_season_is_empty(db: None, client: Client) -> None:
    assert "No season has started yet" in read(client, "/tasks/")


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/tasks/", PAGE])
def test_number_of_queries_is_independent_of_nodes_and_rounds(
    season: Season, client: Client, path: str
) -> None:
    def count() -> int:
        with CaptureQueriesContext(connection) as queries:
            read(client, path)
        return len(queries)

    judge_nodes(season, count=2)
    few = count()
    judge_nodes(season, count=9, rounds=4)
    assert count() == few
