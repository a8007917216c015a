"""Compares a round's published verdicts and scores with recomputed ones, answer by answer.

No I/O: the caller provides the answers and their new verdicts.
"""

from collections import Counter
from collections.abc import Iterator
from enum import IntEnum

from node_client.commands.verification.checks import (
    CheckOutcome,
    Differences,
    FieldPair,
    RoundCheck,
    conclude,
)
from node_client.commands.verification.records import (
    PublishedAnswer,
    PublishedQuestion,
    PublishedRound,
    PublishedScore,
)
from node_client.commands.verification.results import SCORE_TOLERANCE, is_close
from swarm_tasks.cells import Cells, ScoreSummary, summarize_outcomes
from swarm_tasks.verdicts import Verdict


class _Result(IntEnum):
    """The published result of one node's answer to one question."""

    UNANSWERED = 0
    WRONG = 1
    SOLVED = 2
    UNGRADED = 3


class Recount:
    """Compares the published verdicts and scores of a round with recomputed ones.

    Call `add` once with each published answer; if it returns a question, call `compare` with the
    answer's new verdict. Then `check_answers` (or `skip_answers`) and `check_scores` give the
    results. Memory grows with the number of nodes and questions, not with the texts of answers.
    """

    def __init__(self, published: PublishedRound) -> None:
        self._published = published
        self._places = {question.id: place for place, question in enumerate(published.questions)}
        self._results = {
            score.node: bytearray(len(published.questions)) for score in published.scores
        }
        # Questions that count for no node, because an answer to them is ungraded.
        self._ungraded: set[int] = set()
        self._verdicts = Differences()
        self._unexpected = Differences()
        self._scored = 0
        self._skipped: Counter[str] = Counter()

    def add(self, answer: PublishedAnswer) -> PublishedQuestion | None:
        """Record an answer, and return its question if the answer must be scored again, else None.

        An ungraded answer, or one to a question that is not in the round, is not scored again.
        """
        place = self._places.get(answer.question)
        if place is None:
            self._unexpected.add(
                f"answer of {answer.node}",
                published=f"to question {answer.question}",
                ours="no such question in the round",
            )
            return None
        question = self._published.questions[place]
        self._add_result(answer, question, place)
        if answer.score is None or answer.solved is None:
            self._skip_ungraded(answer, question)
            return None
        return question

    def compare(
        self, answer: PublishedAnswer, question: PublishedQuestion, verdict: Verdict
    ) -> None:
        """Compare an answer's published verdict with our `verdict`, and record a difference.

        If the verdicts differ and ours is a timeout, the answer is counted as not comparable
        instead. The same applies if the published verdict is a timeout, is not solved and has
        score 0.
        """
        self._scored += 1
        published = (answer.score, answer.solved, answer.verdict)
        if published == (verdict.score, verdict.solved, verdict.reason):
            return
        if whose := _find_timeout(answer, verdict):
            self._skipped[f"timed out {whose}, so could not be compared on this machine"] += 1
            return
        self._verdicts.add(
            _describe_answer(answer, question),
            published=f"{answer.score}, {_word(answer.solved)}, {answer.verdict}",
            ours=f"{verdict.score}, {_word(verdict.solved)}, {verdict.reason}",
        )

    def check_answers(self) -> RoundCheck:
        """Return the result of comparing all verdicts."""
        return conclude(
            "answers",
            compared=f"{self._scored:,} answers scored again against their verdicts",
            differences=self._verdicts,
            doubts=[f"{count:,} {why}" for why, count in self._skipped.items()],
        )

    def skip_answers(self, why: str) -> RoundCheck:
        """Return the result of comparing the verdicts if some could not be compared.

        `why` is the reason. The outcome is DIFFERS if a difference was recorded, otherwise UNKNOWN.
        """
        outcome = CheckOutcome.DIFFERS if self._verdicts.count else CheckOutcome.UNKNOWN
        return RoundCheck("answers", outcome, why, self._verdicts)

    def check_scores(self) -> RoundCheck:
        """Compare all published scores with those computed from the published verdicts.

        These count as differences too: a repeated answer, an answer to a question that is not in
        the round, an answer of a node without a score row, and a node with two score rows.
        """
        differences = self._unexpected
        if len(self._results) != len(self._published.scores):
            differences.add("score rows", published="repeated nodes", ours="one a node")
        for score in self._published.scores:
            summary = summarize_outcomes(self._outcomes(score.node))
            answered = any(self._results[score.node])
            differences.add_unequal(_pair_score(score, summary, answered=answered), of=score.node)
        return conclude(
            "scores",
            compared=f"{len(self._published.scores):,} nodes' scores against their answers",
            differences=differences,
        )

    def _add_result(self, answer: PublishedAnswer, question: PublishedQuestion, place: int) -> None:
        results = self._results.get(answer.node)
        where = _describe_answer(answer, question)
        if results is None:
            self._unexpected.add(where, published="no score of this node", ours="an answer of it")
            return
        if results[place] != _Result.UNANSWERED:
            self._unexpected.add(where, published="more than once", ours="the first one counts")
            return
        if answer.score is None:
            results[place] = _Result.UNGRADED
            self._ungraded.add(place)
        else:
            results[place] = _Result.SOLVED if answer.solved else _Result.WRONG

    def _skip_ungraded(self, answer: PublishedAnswer, question: PublishedQuestion) -> None:
        """Count an ungraded answer.

        If only one of its `score` and `solved` is None, record a difference instead.
        """
        if (answer.score is None) != (answer.solved is None):
            self._verdicts.add(
                _describe_answer(answer, question),
                published=f"score {answer.score}, {_word(answer.solved)}",
                ours="both or none",
            )
        else:
            self._skipped["not graded in time, so counted nowhere"] += 1

    def _outcomes(self, node: str) -> Iterator[tuple[str, bool | None]]:
        """Yield each question's dataset, and whether the node solved the question.

        The second value is None for a question that counts for no node, because at least one
        answer to it is ungraded.
        """
        for place, question in enumerate(self._published.questions):
            solved = self._results[node][place] == _Result.SOLVED
            yield question.dataset, None if place in self._ungraded else solved


def _find_timeout(answer: PublishedAnswer, verdict: Verdict) -> str:
    """Return in words whether scoring timed out here or only at the site; empty if neither."""
    if verdict.reason == "timeout":
        return "here"
    if answer.verdict == "timeout" and answer.score == 0 and answer.solved is False:
        return "at the site only"
    return ""


def _pair_score(
    score: PublishedScore, summary: ScoreSummary, *, answered: bool
) -> Iterator[FieldPair]:
    """Yield the fields of a published score as (name, published value, our value).

    Our values are from `summary`, which was computed from the answers and counts a missing answer
    as wrong. But for a node that is published as absent and has no published answer (`answered` is
    False), no question counts. `score` and `cells` are yielded only if they differ.
    """
    if score.status == "absent" and not answered:
        summary = ScoreSummary(cells={}, correct=0, n=0, score=None)
    yield "status", score.status, "absent" if summary.score is None else "scored"
    if not is_close(score.score, summary.score, SCORE_TOLERANCE):
        yield "score", score.score, summary.score
    yield "n", score.n, summary.n
    yield "correct", score.correct, summary.correct
    if score.cells != summary.cells:
        yield "cells", _write_cells(score.cells), _write_cells(summary.cells)


def _describe_answer(answer: PublishedAnswer, question: PublishedQuestion) -> str:
    return f"answer of {answer.node} to question {question.position}"


def _word(solved: bool | None) -> str:
    return "ungraded" if solved is None else "solved" if solved else "not solved"


def _write_cells(cells: Cells) -> str:
    return ", ".join(f"{name} {correct}/{n}" for name, (correct, n) in sorted(cells.items()))
