"""Test the download of a season's earlier questions, from which a round can be drawn again."""

import json
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from django.http import StreamingHttpResponse
from django.test import AsyncClient
from django.utils import timezone

from judge.models import Round, Season
from judge.services.oversight import void_round
from judge.services.scheduling import schedule_round
from node_client.commands.verification.checks import CheckOutcome, check_questions
from node_client.commands.verification.earlier import check_earlier, gather_earlier
from node_client.commands.verification.records import PublishedRound, read_asked, read_round
from swarm_tasks.allowlist import GENERATOR
from swarm_tasks.quiz import draw_quiz
from swarm_tasks.verifier import Verifier

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("tidy_stores")]

# About fifty of these belong to the judge's part, so later rounds have to skip some.
FEW = {"dataset": "count_bits", "config": {"min_n": 1, "max_n": 200}, "weight": 1.0}


@pytest.fixture
def rounds(verifier: Verifier, db: None) -> list[Round]:
    """Five closed rounds, the third of them void, of a dataset that is nearly used up."""
    season = Season.objects.create(
        name="Few",
        tasks=[FEW],
        questions_per_round=8,
        generator=GENERATOR,
        state=Season.State.RUNNING,
    )
    now = timezone.now()
    later = now + timedelta(seconds=5)
    made = [schedule_round(season, opens_at=later, now=now, verifier=verifier) for _ in range(5)]
    void_round(made[2], reason="test", actor=None, now=now)
    Round.objects.exclude(pk=made[2].pk).update(phase=Round.Phase.CLOSED, closed_at=now)
    return made


async def download(judge_round: Round) -> list[bytes]:
    answer = await AsyncClient().get(f"/rounds/{judge_round.number}/asked.jsonl")
    assert isinstance(answer, StreamingHttpResponse)
    return b"".join([part async for part in answer]).splitlines()


async def fetch_record(judge_round: Round) -> dict[str, Any]:
    answer = await AsyncClient().get(f"/api/v1/rounds/{judge_round.number}")
    record: dict[str, Any] = answer.json()
    return record


async def test_round_can_be_drawn_again_from_public_files(
    rounds: list[Round], verifier: Verifier
) -> None:
    record = await fetch_record(rounds[-1])
    published = read_round(json.dumps(record).encode())
    earlier = gather_earlier([read_asked(line) for line in await download(rounds[-1])])
    assert check_earlier(published, earlier).outcome is CheckOutcome.HOLDS
    assert len(earlier.digests) == 32
    drawn = _draw(published, earlier.seen, verifier)
    assert check_questions(published, drawn).outcome is CheckOutcome.HOLDS
    alone = _draw(published, lambda _: (), verifier)
    assert check_questions(published, alone).outcome is CheckOutcome.DIFFERS, (
        "no question was skipped"
    )
    assert record["seen_before"] == 0


def _draw(published: PublishedRound, seen: Any, verifier: Verifier) -> Any:
    secret = bytes.fromhex(published.secret)
    return draw_quiz(published.rules, secret=secret, seen=seen, verifier=verifier)


async def test_file_contains_earlier_rounds_of_the_season_including_void_ones(
    rounds: list[Round],
) -> None:
    lines = [msgspec.json.decode(line) for line in await download(rounds[3])]
    assert [line["round"] for line in lines] == [made.number for made in rounds[:3]]
    assert [len(line["questions"]) for line in lines] == [128, 128, 128]


async def test_digests_of_a_sealed_round_are_missing(rounds: list[Round]) -> None:
    await Round.objects.filter(pk=rounds[1].pk).aupdate(phase=Round.Phase.OPEN)
    line = msgspec.json.decode((await download(rounds[3]))[1])
    assert (line["seal"], line["questions"]) == (None, None)
    assert len(line["entry"]) == 64


async def test_file_of_a_sealed_round_returns_409(rounds: list[Round]) -> None:
    await Round.objects.filter(pk=rounds[1].pk).aupdate(phase=Round.Phase.OPEN)
    answer = await AsyncClient().get(f"/rounds/{rounds[1].number}/asked.jsonl")
    assert (answer.status_code, answer.json()["code"]) == (409, "round.sealed")


async def test_repeated_questions_of_earlier_rounds_are_counted(rounds: list[Round]) -> None:
    digests = [*rounds[0].digests[:3], *rounds[3].digests[3:]]
    await Round.objects.filter(pk=rounds[3].pk).aupdate(digests=digests)
    assert (await fetch_record(rounds[3]))["seen_before"] == 3
    page = await AsyncClient().get(f"/rounds/{rounds[3].number}/")
    assert "asked before:</abbr> 3<" in page.content.decode()
