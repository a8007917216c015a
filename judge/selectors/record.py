"""The public record of a round: its answers as entries of the Merkle tree, and its results."""

from django.db.models import F, Func, TextField

from judge.models import (
    Answer,
    Round,
    Score,
)
from swarm_record.answers import AnswerEntry
from swarm_record.results import ResultLine, ResultsHead, encode_results


class _TextHash(Func):
    """SHA-256 of a text as UTF-8, in hex, computed by the database to avoid loading the texts."""

    template = "ENCODE(SHA256(CONVERT_TO(%(expressions)s, 'UTF8')), 'hex')"
    output_field = TextField()


def read_entries(judge_round: Round) -> list[AnswerEntry]:
    """Return all answers of a round as entries of its Merkle tree, in no particular order."""
    rows = Answer.objects.filter(question__round=judge_round).values_list(
        "node__name",
        "question__position",
        "question_id",
        _TextHash(F("text")),
        "key__public",
        "signature",
    )
    return [
        AnswerEntry(node, position, str(question), digest, key or "", signature)
        for node, position, question, digest, key, signature in rows
    ]


def read_result_lines(judge_round: Round) -> list[bytes]:
    """Return the lines of a closed round's published results (`swarm_record.results`)."""
    datasets = judge_round.questions.order_by("position").values_list("dataset", flat=True)
    head = ResultsHead(judge_round.number, judge_round.season.name, list(datasets))
    scores = judge_round.scores.select_related("node")
    return encode_results(head, map(_describe_result, scores))


def _describe_result(score: Score) -> ResultLine:
    return ResultLine(
        node=score.node.name,
        model=score.model,
        arm=score.arm,
        status="scored" if score.status == Score.Status.SCORED else "absent",
        reason=score.reason,
        correct=score.correct,
        n=score.n,
        cells=score.cells,
        score=score.score,
        interval=score.interval,
        answered=bytes(score.answered).hex(),
        solved=bytes(score.solved).hex(),
    )
