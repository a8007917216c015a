"""Comparisons of a round's published parts with the same parts made again; pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import msgspec

from node_client.commands.verification.records import PublishedQuestion, PublishedRound
from node_client.storage.commitments import NotedCommitment
from swarm_protocol.messages import TaskSpec
from swarm_tasks.quiz import commit_quiz
from swarm_tasks.verifier import DrawnTask

# How many differences are named; all are counted.
NAMED = 10


class Outcome(StrEnum):
    """What a check came to."""

    HOLDS = "holds"
    DOUBTFUL = "doubtful"
    DIFFERS = "differs"
    SKIPPED = "skipped"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Difference:
    """One thing that is not as published: where, and what each side has."""

    where: str
    published: str
    ours: str


@dataclass
class Differences:
    """The first NAMED differences, and how many there are."""

    first: list[Difference] = field(default_factory=list)
    count: int = 0

    def add(self, where: str, *, published: str, ours: str) -> None:
        """Count a difference, and keep it if it is one of the first."""
        self.count += 1
        if len(self.first) < NAMED:
            self.first.append(Difference(where, published, ours))


@dataclass(frozen=True)
class Check:
    """One check's result: `compared` says in words what was held against what."""

    name: str
    outcome: Outcome
    compared: str
    differences: Differences = field(default_factory=Differences)


def conclude(
    name: str, *, compared: str, differences: Differences, doubts: Sequence[str] = ()
) -> Check:
    """Return the check that holds if there are no differences, and no doubts either."""
    otherwise = Outcome.DOUBTFUL if doubts else Outcome.HOLDS
    outcome = Outcome.DIFFERS if differences.count else otherwise
    return Check(name, outcome, " · ".join([compared, *doubts]), differences)


def check_commitment(published: PublishedRound, *, number: int) -> Check:
    """Hold the secret and the rules against the commitment, and the rules against the round."""
    differences = Differences()
    ours = commit_quiz(published.rules, secret=bytes.fromhex(published.secret))
    if ours != published.commitment:
        differences.add("commitment", published=published.commitment, ours=ours)
    if published.rules.round != number:
        differences.add("round number", published=str(published.rules.round), ours=str(number))
    return conclude(
        "commitment",
        compared=f"SHA-256 of secret and rules against the published {published.commitment[:16]}…",
        differences=differences,
    )


def check_noted(published: PublishedRound, noted: NotedCommitment | None) -> Check:
    """Hold the published commitment against what this machine's node saw before the end."""
    name = "noted before"
    if noted is None:
        return Check(name, Outcome.SKIPPED, "this machine's node did not see the round open")
    differences = Differences()
    if noted.commitment != published.commitment:
        differences.add("commitment", published=published.commitment, ours=noted.commitment)
    return conclude(
        name,
        compared=f"the published commitment against the one that came here on {noted.seen_at}",
        differences=differences,
    )


def check_questions(published: PublishedRound, drawn: Sequence[DrawnTask]) -> Check:
    """Hold the published questions, in order, against those that the secret gives."""
    differences = Differences()
    asked = published.questions
    if len({question.id for question in asked}) != len(asked):
        differences.add("ids of questions", published="repeated", ours="all different")
    if [question.position for question in asked] != list(range(1, len(asked) + 1)):
        differences.add("positions", published="with gaps or repeated", ours=f"1 to {len(asked)}")
    if len(asked) != len(drawn):
        differences.add("number of questions", published=str(len(asked)), ours=str(len(drawn)))
    for question, task in zip(asked, drawn, strict=False):
        _compare_question(question, task, differences)
    return conclude(
        "questions",
        compared=f"{len(drawn)} questions drawn with the secret against those published, in order",
        differences=differences,
    )


def _compare_question(
    question: PublishedQuestion, task: DrawnTask, differences: Differences
) -> None:
    where = f"question {question.position}"
    if question.dataset != task.spec.dataset:
        differences.add(f"{where}, dataset", published=question.dataset, ours=task.spec.dataset)
    for name in TaskSpec.__struct_fields__:
        published, ours = _write(getattr(question.spec, name)), _write(getattr(task.spec, name))
        if published != ours:
            differences.add(f"{where}, {name} of the spec", published=published, ours=ours)
    if question.prompt != task.question:
        differences.add(f"{where}, prompt", published=question.prompt, ours=task.question)


def _write(value: object) -> str:
    """Return a value as JSON, in which `1` and `true` differ as they do not in Python."""
    return msgspec.json.encode(value, order="sorted").decode()
