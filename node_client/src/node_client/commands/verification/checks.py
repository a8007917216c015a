"""The result of a check, and the checks of a round's commitment and questions; no I/O."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import msgspec

from node_client.commands.verification.records import PublishedQuestion, PublishedRound
from node_client.storage.commitments import RecordedCommitment
from swarm_protocol.messages import TaskSpec
from swarm_tasks.quiz import commit_quiz
from swarm_tasks.verifier import DrawnTask

# Number of differences to show; all are counted.
NAMED = 10


class CheckOutcome(StrEnum):
    """The outcome of a check.

    DOUBTFUL: nothing differs, but not everything could be confirmed. SKIPPED: the check does not
    apply to this round. UNKNOWN: the check could not be made.
    """

    HOLDS = "holds"
    DOUBTFUL = "doubtful"
    DIFFERS = "differs"
    SKIPPED = "skipped"
    UNKNOWN = "unknown"


# A field, its published value, and ours.
FieldPair = tuple[str, object, object]


@dataclass(frozen=True)
class Difference:
    """A published value that differs from the one computed or recorded on this machine (`ours`)."""

    where: str
    published: str
    ours: str


@dataclass
class Differences:
    """The differences that a check found: `count` is their number, `first` has the first NAMED."""

    first: list[Difference] = field(default_factory=list)
    count: int = 0

    def add(self, where: str, *, published: str, ours: str) -> None:
        """Count a difference, and append it to `first` if that has fewer than NAMED."""
        self.count += 1
        if len(self.first) < NAMED:
            self.first.append(Difference(where, published, ours))

    def add_unequal(self, fields: Iterable[FieldPair], *, of: str) -> None:
        """Add a difference for each field with unequal values.

        `of` says in words what has the fields, such as a node's name or `round 12`.
        """
        for field_name, published, ours in fields:
            if published != ours:
                self.add(f"{field_name} of {of}", published=str(published), ours=str(ours))


@dataclass(frozen=True)
class RoundCheck:
    """The result of one check.

    `compared` describes what was compared and any doubts, or why the check was skipped or could not
    be completed.
    """

    name: str
    outcome: CheckOutcome
    compared: str
    differences: Differences = field(default_factory=Differences)


def skip(name: str, why: str) -> RoundCheck:
    """Return the result of a check that does not apply, for the reason `why`."""
    return RoundCheck(name, CheckOutcome.SKIPPED, why)


def conclude(
    name: str, *, compared: str, differences: Differences, doubts: Sequence[str] = ()
) -> RoundCheck:
    """Return the result of a completed check.

    Its outcome is DIFFERS if there are differences, DOUBTFUL if there are only doubts, else HOLDS.
    """
    otherwise = CheckOutcome.DOUBTFUL if doubts else CheckOutcome.HOLDS
    outcome = CheckOutcome.DIFFERS if differences.count else otherwise
    return RoundCheck(name, outcome, " · ".join([compared, *doubts]), differences)


def check_commitment(published: PublishedRound, *, number: int) -> RoundCheck:
    """Compare the published commitment with the hash of the round's secret and rules.

    Also compare the round number in the rules with `number`.
    """
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


def check_recorded(published: PublishedRound, recorded: RecordedCommitment | None) -> RoundCheck:
    """Compare the published commitment with the one that this machine's node recorded.

    The check is skipped if the node recorded none.
    """
    name = "noted before"
    if recorded is None:
        return skip(name, "this machine's node did not see the round open")
    differences = Differences()
    if recorded.commitment != published.commitment:
        differences.add("commitment", published=published.commitment, ours=recorded.commitment)
    return conclude(
        name,
        compared=f"the published commitment against the one that came here on {recorded.seen_at}",
        differences=differences,
    )


def check_questions(published: PublishedRound, drawn: Sequence[DrawnTask]) -> RoundCheck:
    """Compare the published questions, in order, with those that this machine has drawn again."""
    differences = Differences()
    questions = published.questions
    if len({question.id for question in questions}) != len(questions):
        differences.add("ids of questions", published="repeated", ours="all different")
    if [question.position for question in questions] != list(range(1, len(questions) + 1)):
        differences.add(
            "positions", published="with gaps or repeated", ours=f"1 to {len(questions)}"
        )
    if len(questions) != len(drawn):
        differences.add("number of questions", published=str(len(questions)), ours=str(len(drawn)))
    for question, task in zip(questions, drawn, strict=False):
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
    """Return a value as JSON, where `1` and `true` differ, unlike in Python."""
    return msgspec.json.encode(value, order="sorted").decode()
