"""A small closed round, as an honest coordinator publishes it, for tests that manipulate it."""

import copy
import json
from dataclasses import dataclass
from typing import Any

import msgspec

from node_client.commands.verification.records import (
    PublishedAnswer,
    PublishedAsked,
    PublishedRound,
    read_answer,
    read_asked,
    read_round,
)
from swarm_protocol.messages import TaskChoice
from swarm_tasks.allowlist import GENERATOR
from swarm_tasks.answers import AnswerRules
from swarm_tasks.asked import (
    NOTHING_ASKED,
    digest_question,
    encode_digests,
    entry_of,
    extend_chain,
    seal_of,
)
from swarm_tasks.cells import summarize_outcomes
from swarm_tasks.quiz import QuizRules, commit_quiz, draw_quiz, with_answers
from swarm_tasks.verifier import DrawnTask, Verifier
from tests.node_client.fakes import SEED, SUMS

NUMBER = 12
SECRET = bytes(range(32))
RULES = QuizRules(
    round=NUMBER,
    season="sums",
    seed=SEED,
    generator=GENERATOR,
    tasks=[
        TaskChoice("chain_sum", SUMS, 2.0),
        TaskChoice("spell_backward", {"min_word_len": 3, "max_word_len": 5}, 1.0),
    ],
    questions=6,
    answers=AnswerRules.EXACT.value,
    asked=NOTHING_ASKED,
)


@dataclass
class Published:
    """The responses of a site: the round's record, and a line for each answer and earlier round."""

    record: dict[str, Any]
    answers: list[dict[str, Any]]
    asked: list[dict[str, Any]]

    @property
    def round(self) -> PublishedRound:
        return read_round(json.dumps(self.record).encode())

    @property
    def lines(self) -> list[PublishedAnswer]:
        return [read_answer(json.dumps(answer).encode()) for answer in self.answers]

    @property
    def earlier(self) -> list[PublishedAsked]:
        return [read_asked(json.dumps(each).encode()) for each in self.asked]

    def copy(self) -> "Published":
        return copy.deepcopy(self)

    def score_of(self, node: str) -> dict[str, Any]:
        rows: dict[str, dict[str, Any]] = {row["node"]: row for row in self.record["scores"]}
        return rows[node]

    def answers_of(self, node: str) -> list[dict[str, Any]]:
        return [answer for answer in self.answers if answer["node"] == node]

    def leave_ungraded(self, *left: dict[str, Any]) -> None:
        """Remove the verdicts of some answers, so that their questions count for no node."""
        for answer in left:
            answer.update(score=None, solved=None, verdict="")
        ungraded = {answer["question"] for answer in left}
        datasets = {q["id"]: q["dataset"] for q in self.record["questions"]}
        counted = {
            question: name for question, name in datasets.items() if question not in ungraded
        }
        for row in self.record["scores"]:
            if row["status"] == "scored":
                row.update(_marks(self.answers_of(row["node"]), counted))


def publish_round(
    verifier: Verifier, *, reading: AnswerRules = AnswerRules.EXACT, wrapping: str = "{}"
) -> Published:
    """Return a round of four nodes, one of which was absent.

    `able-owl` is always right; `bold-fox` is sometimes wrong and omits one question; `calm-elk` is
    right except for the last question. Right answers are put into the `wrapping`. Two earlier
    rounds asked some of the questions that the secret gives.
    """
    asked, rules = _ask_earlier_rounds(verifier)
    rules = with_answers(rules, reading)
    drawn = _draw(rules, {digest for _, digests in asked for digest in digests}, verifier)
    right: list[str | None] = [
        f"<answer>{wrapping.format(_solve(task))}</answer>" for task in drawn
    ]
    texts: dict[str, list[str | None]] = {
        "able-owl": right,
        "bold-fox": [*right[:2], "no idea", None, "<answer>dog</answer>", right[5]],
        "calm-elk": [*(f"It must be {text}" for text in right[:5]), "<answer></answer>"],
    }
    answers = [
        _answer(node, place, text, drawn, verifier, reading)
        for node, given in texts.items()
        for place, text in enumerate(given)
        if text is not None
    ]
    record = {
        "number": NUMBER,
        "phase": "closed",
        "commitment": commit_quiz(rules, secret=SECRET),
        "secret": SECRET.hex(),
        "rules": msgspec.to_builtins(rules),
        "questions": [
            {
                "id": f"q{position}",
                "position": position,
                "dataset": task.spec.dataset,
                "prompt": task.question,
                "spec": msgspec.to_builtins(task.spec),
            }
            for position, task in enumerate(drawn, start=1)
        ],
        "scores": [
            *(
                _row(
                    node,
                    **_marks(
                        [each for each in answers if each["node"] == node],
                        {f"q{at}": task.spec.dataset for at, task in enumerate(drawn, start=1)},
                    ),
                )
                for node in texts
            ),
            _row("dear-gnu", status="absent", reason="not_offered"),
        ],
    }
    return Published(record, answers, [_asked_line(*each) for each in asked])


def _ask_earlier_rounds(verifier: Verifier) -> tuple[list[tuple[int, list[int]]], QuizRules]:
    """Return the question digests of two earlier rounds, and the rules that are bound to them."""
    once = [digest_question(task.question) for task in _draw(RULES, set(), verifier)]
    asked = [(NUMBER - 2, [once[0], 17]), (NUMBER - 1, [-4, once[5]])]
    entries = [entry_of(digests, seal=_seal(number)) for number, digests in asked]
    return asked, msgspec.structs.replace(RULES, asked=extend_chain(NOTHING_ASKED, entries))


def _draw(rules: QuizRules, asked: set[int], verifier: Verifier) -> list[DrawnTask]:
    return draw_quiz(rules, secret=SECRET, seen=asked.intersection, verifier=verifier)


def _seal(number: int) -> bytes:
    return seal_of(bytes([number]) * 32)


def _asked_line(number: int, digests: list[int]) -> dict[str, Any]:
    seal = _seal(number)
    return {
        "round": number,
        "entry": entry_of(digests, seal=seal).hex(),
        "seal": seal.hex(),
        "questions": encode_digests(digests).hex(),
    }


def _answer(
    node: str,
    place: int,
    text: str,
    drawn: list[DrawnTask],
    verifier: Verifier,
    reading: AnswerRules,
) -> dict[str, Any]:
    [verdict] = verifier.score(drawn[place].spec, [text], rules=reading)
    return {
        "node": node,
        "question": f"q{place + 1}",
        "text": text,
        "finish_reason": "stop",
        "received_at": "2026-01-01T12:00:30+00:00",
        "latency_ms": 900,
        "score": verdict.score,
        "solved": verdict.solved,
        "verdict": verdict.reason,
    }


def _marks(answers: list[dict[str, Any]], datasets: dict[str, str]) -> dict[str, Any]:
    """Return the score fields of a node's answers, over the given questions with their datasets."""
    solved = {each["question"]: each["solved"] for each in answers}
    summary = summarize_outcomes(
        (dataset, solved.get(question, False)) for question, dataset in datasets.items()
    )
    return {
        "status": "absent" if summary.score is None else "scored",
        "score": summary.score,
        "n": summary.n,
        "correct": summary.correct,
        "cells": {name: list(cell) for name, cell in summary.cells.items()},
    }


def _row(node: str, *, status: str, **others: Any) -> dict[str, Any]:
    empty: dict[str, Any] = {"reason": "", "score": None, "n": 0, "correct": 0, "cells": {}}
    return {"node": node, "model": "toy", "arm": "swarm", "status": status, **empty, **others}


def _solve(task: DrawnTask) -> str:
    """Return the right answer, which is easy to read from these questions."""
    if task.spec.dataset == "spell_backward":
        return task.question.split(": ")[-1][::-1]
    left, sign, right = task.question.split(":")[1].strip(" =").split(" ")
    return str(int(left) + int(sign + right))
