"""A judge round's questions follow from public rules and one secret.

The judge draws them, and publishes a commitment before anybody answers. Once the round has closed
and the secret is out, whoever has both checks the commitment and draws the same questions again:
the judge neither chose them by hand nor changed them. `docs/tasks.md` has a worked example.
"""

import hashlib
from collections.abc import Sequence
from fractions import Fraction
from itertools import count

import msgspec
from msgspec import UNSET, Struct, UnsetType

from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_protocol.messages import TaskChoice
from swarm_tasks.allowlist import GENERATOR
from swarm_tasks.answers import AnswerRules
from swarm_tasks.keyspace import Part
from swarm_tasks.pool import AnyVerifier
from swarm_tasks.verifier import DrawnTask

QUIZ_FORMAT = "murmuration-quiz-1"
# The same, with the rules by which answers are read; a client that does not know these cannot check
# a round, and has to see that.
QUIZ_FORMAT_WITH_ANSWERS = "murmuration-quiz-2"
SECRET_BYTES = 32
# How many candidates a question may take before repeated ones are accepted: a dataset that knows
# fewer different questions than are asked repeats them.
_PATIENCE = 19


class QuizRules(Struct, frozen=True):
    """All that decides a round's questions but its secret.

    `tasks` is the season's mix and `questions` how many there are in all; `format` names the
    algorithm of this module. `answers` names the rules by which answers are read
    (`swarm_tasks.answers`); rounds of the first format leave it out, and read them to the letter.
    """

    round: int
    season: str
    seed: int
    generator: str
    tasks: list[TaskChoice]
    questions: int
    format: str = QUIZ_FORMAT
    answers: str | UnsetType = UNSET

    @property
    def answer_rules(self) -> AnswerRules | None:
        """How answers are read; None where this version does not know."""
        if self.format == QUIZ_FORMAT and self.answers is UNSET:
            return AnswerRules.EXACT
        if self.format == QUIZ_FORMAT_WITH_ANSWERS and self.answers in list(AnswerRules):
            return AnswerRules(self.answers)
        return None


def with_answers(rules: QuizRules, answers: AnswerRules) -> QuizRules:
    """Return rules of a round whose answers are read so, in the oldest format that can say it."""
    if answers is AnswerRules.EXACT:
        return rules
    return msgspec.structs.replace(rules, format=QUIZ_FORMAT_WITH_ANSWERS, answers=answers.value)


def encode_rules(rules: QuizRules) -> bytes:
    """Return the rules as canonical JSON: names sorted, no spaces, UTF-8, no escapes but needed.

    A weight always has a decimal point (`1.0`).
    """
    return msgspec.json.encode(rules, order="sorted")


def commit_quiz(rules: QuizRules, *, secret: bytes) -> str:
    """Return the commitment: SHA-256 of the secret and the canonical rules, in lower-case hex.

    It tells nothing about the questions, because the secret's 256 bits are random; and nobody can
    find another secret or other rules for it. Raises ValueError for a secret of another length:
    then it would not be clear where the rules begin.
    """
    if len(secret) != SECRET_BYTES:
        raise ValueError(f"a secret of {len(secret)} bytes, a round's has {SECRET_BYTES}")
    return hashlib.sha256(secret + encode_rules(rules)).hexdigest()


def draw_quiz(rules: QuizRules, *, secret: bytes, verifier: AnyVerifier) -> list[DrawnTask]:
    """Return a round's questions, dataset by dataset in the order of the tasks.

    They come from the judge's part of the key space, by the stream that the secret opens, and
    differ from each other unless a dataset's question space is too small for that. The round's
    number and the season's name play no part.

    Raises RefusedError TASK_FOREIGN for rules that this version does not follow, and what
    `Verifier.draw` raises; ValueError when there are fewer questions than tasks.
    """
    if rules.answer_rules is None or rules.generator != GENERATOR:
        raise RefusedError(
            ErrorCode.TASK_FOREIGN,
            f"made by {rules.format!r} with {rules.generator!r}, this side has"
            f" {QUIZ_FORMAT_WITH_ANSWERS!r} with {GENERATOR!r}",
        )
    asked: set[str] = set()
    drawn: list[DrawnTask] = []
    shares = share_questions(rules.tasks, rules.questions)
    for task, share in zip(rules.tasks, shares, strict=True):
        drawn += draw_different(
            task,
            share,
            asked,
            key=secret,
            part=Part.JUDGE,
            seed=rules.seed,
            verifier=verifier,
        )
    return drawn


def draw_different(
    task: TaskChoice,
    share: int,
    asked: set[str],
    *,
    key: bytes,
    part: Part,
    seed: int,
    verifier: AnyVerifier,
) -> list[DrawnTask]:
    """Return `share` of one task's questions from a keyed stream of one part.

    None of them was asked already, unless the question space is too small for that; they are added
    to those that were. Raises RefusedError as `Verifier.draw` does.
    """
    drawn: list[DrawnTask] = []
    for counter in count():
        if len(drawn) == share:
            break
        candidate = verifier.draw(
            key=key,
            part=part,
            dataset=task.dataset,
            config=task.config,
            seed=seed,
            counter=counter,
        )
        if candidate.question not in asked or counter >= _PATIENCE * share:
            asked.add(candidate.question)
            drawn.append(candidate)
    return drawn


def share_questions(tasks: Sequence[TaskChoice], total: int) -> list[int]:
    """Return how many of `total` questions each task gets: its share by weight, at least one.

    Shares are rounded by largest remainders, earlier tasks first where those are equal. A task
    whose share is less than one gets one, and the others divide what is left. So every round of a
    season has the same strata. Fractions, because sums of floats differ between Python versions.

    Raises ValueError when there are fewer questions than tasks.
    """
    if total < len(tasks):
        raise ValueError(f"{total} questions do not go round {len(tasks)} tasks")
    weights = [Fraction(task.weight) for task in tasks]
    counts = [1] * len(tasks)
    large = list(range(len(tasks)))
    while True:
        left = total - (len(tasks) - len(large))
        weight = sum(weights[place] for place in large)
        shares = {place: left * weights[place] / weight for place in large}
        if all(share >= 1 for share in shares.values()):
            break
        large = [place for place in large if shares[place] >= 1]
    for place, share in shares.items():
        counts[place] = int(share)
    by_remainder = sorted(large, key=lambda place: int(shares[place]) - shares[place])
    for place in by_remainder[: total - sum(counts)]:
        counts[place] += 1
    return counts
