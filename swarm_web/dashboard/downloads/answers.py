"""Every answer of a closed round, one JSON object a line, streamed as the reward downloads are."""

from collections.abc import AsyncIterator, Mapping

from django.db.models import QuerySet

from judge.models import Answer, Round
from swarm_web.dashboard.downloads.rewards import read_chunks, write_jsonl
from swarm_web.dashboard.reports.round import is_revealed
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


def select_answers(number: int) -> QuerySet[Answer]:
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
            f"The answers of round {number} are sealed: it has not closed.",
            fix=f"Ask again when /api/v1/rounds/{number} says that it is closed.",
            status=409,
        )
    answers = Answer.objects.filter(question__round=judge_round)
    return answers.order_by("node__name", "question__position")


async def stream_answers(answers: QuerySet[Answer]) -> AsyncIterator[bytes]:
    """Write one JSON object a line, with KEYS as keys."""
    async for rows in read_chunks(answers, KEYS.values()):
        yield write_jsonl(KEYS, rows)
