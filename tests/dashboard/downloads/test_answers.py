"""Test the download of all answers of a closed round, one per line."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.http import StreamingHttpResponse
from django.test import AsyncClient
from django.utils import timezone

from judge.models import Answer, Round
from judge.services.oversight import quarantine_node
from node_client.commands.verification.records import read_answer, read_round
from swarm_web.nodes.models import Node
from tests.factories import make_answer, make_node, make_round, make_score, make_season

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("tidy_stores")]


def make_answered_round() -> Round:
    """Create a closed round; of its two nodes, the later by name answers first."""
    judge_round = make_round(make_season(), phase=Round.Phase.CLOSED, questions=4)
    first, second, third, _ = judge_round.questions.order_by("position")
    bold, amber = make_node("bold")[0], make_node("amber")[0]
    for question in (third, first, second):
        make_answer(question, bold, solved=question == first, text=f"bold {question.position}")
    make_answer(second, amber, solved=True, text="amber 2")
    return judge_round


async def download(judge_round: Round) -> list[dict[str, Any]]:
    answer = await AsyncClient().get(f"/rounds/{judge_round.number}/answers.jsonl")
    assert isinstance(answer, StreamingHttpResponse)
    assert answer.is_async, "a synchronous iterator would be read completely before the first byte"
    text = b"".join([part async for part in answer]).decode()
    return [json.loads(line) for line in text.splitlines()]


async def test_lines_are_ordered_by_node_and_position() -> None:
    lines = await download(await sync_to_async(make_answered_round)())
    assert [line["text"] for line in lines] == ["amber 2", "bold 1", "bold 2", "bold 3"]


async def test_line_has_the_values_of_the_answer() -> None:
    judge_round = await sync_to_async(make_answered_round)()
    received = datetime(2026, 11, 21, 9, 5, 1, tzinfo=UTC)
    await Answer.objects.filter(text="amber 2").aupdate(latency_ms=1250, received_at=received)
    question = await judge_round.questions.aget(position=2)
    line = (await download(judge_round))[0]
    assert line == {
        "node": "amber",
        "question": str(question.pk),
        "text": "amber 2",
        "finish_reason": "stop",
        "received_at": "2026-11-21T09:05:01Z",
        "latency_ms": 1250,
        "score": 1.0,
        "solved": True,
        "verdict": "right",
        "key": None,
        "signature": "",
    }


async def test_questions_of_lines_are_questions_of_the_api() -> None:
    judge_round = await sync_to_async(make_answered_round)()
    record = (await AsyncClient().get(f"/api/v1/rounds/{judge_round.number}")).json()
    ids = {question["id"] for question in record["questions"]}
    assert {line["question"] for line in await download(judge_round)} < ids


async def test_verifier_of_the_client_reads_round_and_answers() -> None:
    judge_round = await sync_to_async(make_answered_round)()
    amber = await Node.objects.aget(name="amber")
    await sync_to_async(make_score)(judge_round, amber, correct=1, n=4)
    record = await AsyncClient().get(f"/api/v1/rounds/{judge_round.number}")
    published = read_round(record.content)
    assert [score.cells for score in published.scores] == [{"chain_sum": (1, 4)}]
    lines = [read_answer(json.dumps(line).encode()) for line in await download(judge_round)]
    assert {line.question for line in lines} < {question.id for question in published.questions}


async def test_answers_of_quarantined_nodes_are_included() -> None:
    judge_round = await sync_to_async(make_answered_round)()
    answer = await Answer.objects.select_related("node").aget(text="amber 2")
    await sync_to_async(quarantine_node)(
        answer.node, reason="copies", actor=None, now=timezone.now()
    )
    assert len(await download(judge_round)) == 4


async def test_unknown_round_returns_404(db: None) -> None:
    refusal = await AsyncClient().get("/rounds/987654/answers.jsonl")
    assert (refusal.status_code, refusal.json()["code"]) == (404, "not_found")
