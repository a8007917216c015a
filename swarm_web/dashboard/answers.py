"""Every answer of a closed round, one JSON object a line, streamed as the reward downloads are."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

import msgspec
from django.db.models import F, QuerySet

from judge.models import Answer, Round
from swarm_web.dashboard.round_report import is_revealed
from swarm_web.errors import RequestError

# Key of a line, and the field that it is read from. `latency_ms` is counted from the offer of the
# questions; `score`, `solved` and `verdict` are the judge's.
KEYS: Mapping[str, str] = {
    "node": "node__name",
    "question": "question_id",
    "text": "text",
    "finish_reason": "finish_reason",
    "received_at": "received_at",
    "latency_ms": "latency_ms",
    "score": "score",
    "solved": "solved",
    "verdict": "verdict",
}
# Answers read from the database, and written to the visitor, at a time.
CHUNK = 500


def select_answers(number: int) -> QuerySet[Answer, tuple[Any, ...]]:
    """Return the answers of a round, by node's name and question's position.

    Raises RequestError when there is no such round, or it has not closed.
    """
    judge_round = Round.objects.filter(number=number).first()
    if judge_round is None:
        raise RequestError(
            "not_found",
            f"There is no round {number}.",
            fix="List what there is with /api/v1/rounds.",
            status=404,
        )
    if not is_revealed(judge_round):
        raise RequestError(
            "round.sealed",
            f"Round {number} has not closed: its answers are sealed.",
            fix=f"Ask again after {judge_round.score_by.isoformat()}, when it has closed.",
            status=409,
        )
    answers = Answer.objects.filter(question__round=judge_round)
    fields = [F(field) for field in KEYS.values()]
    return answers.order_by("node__name", "question__position").values_list(*fields)
