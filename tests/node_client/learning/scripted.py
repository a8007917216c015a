"""A policy with scripted answers, so that a test decides which questions are mastered."""

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pytest

from node_client.model.policy import Policy
from node_client.model.sampling import Generated


def sum_of(question: str) -> int:
    """Return the right answer to a question of the toy season."""
    found = re.search(r"(\d+) ([+-]) (\d+) =", question)
    assert found is not None
    return int(found[1]) + int(found[2] + found[3])


def answer_right(
    policy: Policy,
    monkeypatch: pytest.MonkeyPatch,
    *,
    right: Callable[[str], int],
) -> list[str]:
    """Let the policy give `right(question)` right answers among the completions of a question.

    Returns the list of questions that it is asked, which grows.
    """
    asked: list[str] = []

    def generate(
        questions: Sequence[str], *, completions: int, **sampling: Any
    ) -> list[list[Generated]]:
        asked.extend(questions)
        return [
            [
                _generated(policy, sum_of(question) if place < right(question) else "no")
                for place in range(completions)
            ]
            for question in questions
        ]

    monkeypatch.setattr(policy, "generate", generate)
    return asked


def _generated(policy: Policy, answer: object) -> Generated:
    text = f"<answer>{answer}</answer>"
    ids = policy.completion_ids(text, "stop")
    assert ids is not None
    return Generated(text=text, finish_reason="stop", token_ids=ids, logprobs=[-1.0] * len(ids))


class RecordedBatch(NamedTuple):
    """The questions of a batch, how answers were sampled, and the answers."""

    questions: Sequence[str]
    sampling: dict[str, Any]
    answers: list[list[Generated]]


def record_batches(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> list[RecordedBatch]:
    """Return the batches that the policy answers from now on; the list grows."""
    batches: list[RecordedBatch] = []
    answer = policy.generate

    def record(questions: Sequence[str], **sampling: Any) -> list[list[Generated]]:
        batches.append(RecordedBatch(questions, sampling, answer(questions, **sampling)))
        return batches[-1].answers

    monkeypatch.setattr(policy, "generate", record)
    return batches
