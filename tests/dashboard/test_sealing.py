"""Nothing of a round's questions, answers or scores is told before it has closed."""

import pytest
from django.test import Client

from judge.models import Round, Season
from tests.factories import make_answer, make_node, make_round, make_score, make_seat

SECRETS = ["What is 1 +", "swordfish"]
UNCLOSED = [Round.Phase.SCHEDULED, Round.Phase.OPEN, Round.Phase.SCORING, Round.Phase.VOID]


def make_answered_round(season: Season, phase: Round.Phase) -> Round:
    judge_round = make_round(season, phase=phase)
    node, _ = make_node("sly-fox")
    make_seat(judge_round, node)
    make_score(judge_round, node, correct=11, n=16)
    for question in judge_round.questions.all():
        make_answer(question, node, solved=True, text="swordfish")
    return judge_round


@pytest.mark.parametrize("phase", UNCLOSED)
@pytest.mark.parametrize(
    "path",
    [
        "/rounds/{number}/",
        "/api/v1/rounds/{number}",
        "/rounds/",
        "/api/v1/rounds",
        "/nodes/sly-fox/",
        "/api/v1/nodes/sly-fox",
    ],
)
def test_an_unclosed_round_is_sealed(
    season: Season, client: Client, phase: Round.Phase, path: str
) -> None:
    judge_round = make_answered_round(season, phase)
    told = client.get(path.format(number=judge_round.number)).content.decode()
    indices = [str(question.spec["index"]) for question in judge_round.questions.all()]
    assert not [secret for secret in [*SECRETS, *indices, "0.6875", ".688"] if secret in told]


def test_a_closed_round_is_revealed(season: Season, client: Client) -> None:
    judge_round = make_answered_round(season, Round.Phase.CLOSED)
    told = client.get(judge_round.get_absolute_url()).content.decode()
    assert all(secret in told for secret in SECRETS)
