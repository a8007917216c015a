"""Test that questions, answers and scores of a round are not shown before it has closed."""

import re

import msgspec
import pytest
from django.test import Client
from django.utils import timezone

from judge.engine import Phase
from judge.models import Round, Season
from judge.services.oversight import void_round
from swarm_tasks.quiz import QuizRules, commit_quiz
from tests.factories import make_answer, make_node, make_round, make_score, make_seat, publish

TEXTS = ["What is 1 +", "swordfish"]
UNCLOSED = [Phase.SCHEDULED, Phase.OPEN, Phase.SCORING, Phase.VOID]


def make_answered_round(season: Season, phase: Phase) -> Round:
    judge_round = make_round(season, phase=phase)
    node, _ = make_node("sly-fox")
    make_seat(judge_round, node)
    make_score(judge_round, node, correct=11, n=16)
    for question in judge_round.questions.all():
        make_answer(question, node, solved=True, text="swordfish")
    return judge_round


def secrets_of(judge_round: Round) -> list[str]:
    """Return all texts that must not be shown before the round has closed."""
    indices = [str(question.spec["index"]) for question in judge_round.questions.all()]
    return [*TEXTS, *indices, bytes(judge_round.secret).hex(), "0.6875", ".688"]


@pytest.mark.parametrize("phase", UNCLOSED)
@pytest.mark.parametrize(
    "path",
    [
        "/rounds/{number}/",
        "/rounds/{number}/replay.json",
        "/rounds/{number}/questions/1/",
        "/api/v1/rounds/{number}",
        "/rounds/",
        "/rounds/figure.json",
        "/api/v1/rounds",
        "/nodes/sly-fox/",
        "/api/v1/nodes/sly-fox",
        "/tasks/",
        "/tasks/chain_sum/",
        "/tasks/chain_sum/figure.json",
    ],
)
def test_unclosed_round_is_sealed(season: Season, client: Client, phase: Phase, path: str) -> None:
    judge_round = make_answered_round(season, phase)
    shown = client.get(path.format(number=judge_round.number)).content.decode()
    # The fraction of a second may equal any number, also the score.
    shown = re.sub(r":\d\d\.\d+", "", shown)
    assert not [secret for secret in secrets_of(judge_round) if secret in shown]


@pytest.mark.parametrize("phase", UNCLOSED)
def test_answers_of_an_unclosed_round_return_409(
    season: Season, client: Client, phase: Phase
) -> None:
    judge_round = make_answered_round(season, phase)
    refusal = client.get(f"/rounds/{judge_round.number}/answers.jsonl")
    assert refusal.status_code == 409
    assert refusal.json().keys() == {"code", "message", "fix"}
    assert refusal.json()["code"] == "round.sealed"


def test_refusal_of_a_round_voided_while_open_does_not_advise_to_wait(
    season: Season, client: Client
) -> None:
    judge_round = make_answered_round(season, Phase.VOID)
    refusal = client.get(f"/rounds/{judge_round.number}/answers.jsonl").json()
    assert refusal["message"] == (
        f"Round {judge_round.number} is sealed: it was voided before it closed."
    )
    assert "Ask again" not in refusal["fix"]


@pytest.mark.parametrize("phase", [*UNCLOSED, Phase.CLOSED])
def test_commitment_is_public_in_every_phase(season: Season, client: Client, phase: Phase) -> None:
    judge_round = make_answered_round(season, phase)
    number = judge_round.number
    assert judge_round.commitment in client.get(f"/rounds/{number}/").content.decode()
    assert client.get(f"/api/v1/rounds/{number}").json()["commitment"] == judge_round.commitment
    (listed,) = client.get("/api/v1/rounds").json()["items"]
    assert listed["commitment"] == judge_round.commitment


@pytest.mark.parametrize("phase", UNCLOSED)
def test_secret_and_rules_are_null_until_the_round_has_closed(
    season: Season, client: Client, phase: Phase
) -> None:
    number = make_answered_round(season, phase).number
    shown = client.get(f"/api/v1/rounds/{number}").json()
    assert (shown["secret"], shown["rules"], shown["questions"]) == (None, None, [])


def test_page_of_a_sealed_round_explains_the_commitment(season: Season, client: Client) -> None:
    judge_round = make_answered_round(season, Phase.OPEN)
    shown = client.get(judge_round.get_absolute_url()).content.decode()
    assert "the hash below was published before any node answered" in shown


def test_closed_round_is_revealed(season: Season, client: Client) -> None:
    judge_round = make_answered_round(season, Phase.CLOSED)
    shown = client.get(judge_round.get_absolute_url()).content.decode()
    secrets = [text for text in secrets_of(judge_round) if text != "0.6875"]
    assert not [text for text in secrets if text not in shown]


def test_revealed_secret_and_rules_reproduce_the_commitment(season: Season, client: Client) -> None:
    number = make_answered_round(season, Phase.CLOSED).number
    shown = client.get(f"/api/v1/rounds/{number}").json()
    rules = msgspec.convert(shown["rules"], QuizRules)
    assert commit_quiz(rules, secret=bytes.fromhex(shown["secret"])) == shown["commitment"]


def test_round_voided_after_it_closed_is_revealed_without_scores(
    season: Season, client: Client
) -> None:
    judge_round = make_answered_round(season, Phase.CLOSED)
    publish(season)
    void_round(judge_round, reason="a bad question", actor=None, now=timezone.now())
    shown = client.get(f"/api/v1/rounds/{judge_round.number}").json()
    assert shown["secret"] == bytes(judge_round.secret).hex()
    assert len(shown["questions"]) == 16
    assert shown["scores"] == []
    page = client.get(judge_round.get_absolute_url()).content.decode()
    assert "a bad question" in page
    assert "swordfish" in page
    assert "<h2>Scores</h2>" not in page
