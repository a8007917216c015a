"""Draws a judge round's questions from public rules, a secret, and the questions asked before.

The judge publishes a commitment to rules and secret before anybody answers, and the secret after
the round has closed. Then everybody can check the commitment and draw the same questions again, so
the judge can neither choose them by hand nor change them. Except in the two oldest formats, no
question is asked twice in a season (`swarm_tasks.asked`). If the rules name a public beacon
(`swarm_tasks.beacon`), its value is mixed with the secret, so the judge cannot choose questions by
choosing the secret either. `docs/tasks.md` has a worked example.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import count

import msgspec
from msgspec import UNSET, Struct, UnsetType

from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_protocol.messages import TaskChoice
from swarm_tasks.allowlist import GENERATOR
from swarm_tasks.answers import AnswerRules
from swarm_tasks.asked import Seen, digest_question
from swarm_tasks.beacon import TIMETABLES, Beacon, BeaconValue, mix_key
from swarm_tasks.keyspace import Part
from swarm_tasks.pool import AnyVerifier
from swarm_tasks.verifier import DrawnTask

QUIZ_FORMAT = "murmuration-quiz-3"
# QUIZ_FORMAT with a public beacon. It has its own name because older versions, which ignore the
# beacon, would draw other questions.
QUIZ_FORMAT_BEACON = "murmuration-quiz-4"
# Rounds of earlier formats can still be checked. They may repeat questions of earlier rounds. Rules
# of the first format do not name the rules by which answers are read.
QUIZ_FORMAT_1 = "murmuration-quiz-1"
QUIZ_FORMAT_2 = "murmuration-quiz-2"
SECRET_BYTES = 32
# How many candidates may be drawn for each question before repeated ones are accepted, because a
# dataset may have fewer different questions than are asked.
_DISTINCT_ATTEMPTS = 19
# How many candidates may be drawn for a dataset's share of a round before the round stays short. If
# nine candidates of ten were asked already, one share of 700,000 is not filled.
_MIN_CANDIDATES, _CANDIDATES_PER_QUESTION = 128, 16


class QuizRules(Struct, frozen=True):
    """A round's public rules. With the secret, they determine the round's questions (`draw_quiz`).

    `tasks` is the season's mix and `questions` the number of questions in the round; `format` names
    the version of the drawing algorithm. `answers` names the answer rules (`swarm_tasks.answers`);
    rounds of the first format have no such field and use EXACT. `asked` is the newest hash of the
    chain over the questions of the season's earlier rounds (`swarm_tasks.asked`); the first two
    formats do not have it. `beacon` names a value of a public beacon; this value is mixed with the
    secret. Only QUIZ_FORMAT_BEACON has this field.
    """

    round: int
    season: str
    seed: int
    generator: str
    tasks: list[TaskChoice]
    questions: int
    format: str = QUIZ_FORMAT
    answers: str | UnsetType = UNSET
    asked: str | UnsetType = UNSET
    beacon: Beacon | UnsetType = UNSET

    @property
    def are_known(self) -> bool:
        """Whether this program can draw questions and read answers by these rules."""
        if (self.beacon is UNSET) == (self.format == QUIZ_FORMAT_BEACON):
            return False
        if self.beacon is not UNSET and self.beacon.chain not in TIMETABLES:
            return False
        return self.answer_rules is not None and self.generator == GENERATOR

    @property
    def answer_rules(self) -> AnswerRules | None:
        """The rules for finding the answer in a completion; None if unknown to this program."""
        if self.format == QUIZ_FORMAT_1:
            return AnswerRules.EXACT if self.answers is UNSET else None
        newer = (QUIZ_FORMAT_2, QUIZ_FORMAT, QUIZ_FORMAT_BEACON)
        if self.format in newer and self.answers in list(AnswerRules):
            return AnswerRules(self.answers)
        return None

    @property
    def may_repeat(self) -> bool:
        """Whether earlier rounds' questions may repeat: only in QUIZ_FORMAT_1 and QUIZ_FORMAT_2."""
        return self.format in (QUIZ_FORMAT_1, QUIZ_FORMAT_2)


def with_answers(rules: QuizRules, answers: AnswerRules) -> QuizRules:
    """Return `rules` with the answer rules `answers`.

    QUIZ_FORMAT_1 has no field for answer rules and implies EXACT. Rules of this format are returned
    unchanged if `answers` is EXACT; otherwise the result has QUIZ_FORMAT_2.
    """
    if rules.format != QUIZ_FORMAT_1:
        return msgspec.structs.replace(rules, answers=answers.value)
    if answers is AnswerRules.EXACT:
        return rules
    return msgspec.structs.replace(rules, format=QUIZ_FORMAT_2, answers=answers.value)


def with_beacon(rules: QuizRules, beacon: Beacon) -> QuizRules:
    """Return `rules` in the format QUIZ_FORMAT_BEACON, with `beacon`."""
    return msgspec.structs.replace(rules, format=QUIZ_FORMAT_BEACON, beacon=beacon)


def encode_rules(rules: QuizRules) -> bytes:
    """Return the rules as canonical JSON: names sorted, no spaces, UTF-8, no unnecessary escapes.

    A weight is always written as a float (`1.0`).
    """
    return msgspec.json.encode(rules, order="sorted")


def commit_quiz(rules: QuizRules, *, secret: bytes) -> str:
    """Return the commitment: SHA-256 of the secret and the canonical rules, in lower-case hex.

    The commitment does not reveal the questions, because the secret's 256 bits are random. Nobody
    can find another secret or other rules with the same commitment.

    Raises ValueError for a secret that does not have SECRET_BYTES bytes. If other lengths were
    allowed, the hashed bytes would not show where the secret ends and the rules begin.
    """
    if len(secret) != SECRET_BYTES:
        raise ValueError(f"a secret of {len(secret)} bytes, a round's has {SECRET_BYTES}")
    return hashlib.sha256(secret + encode_rules(rules)).hexdigest()


def draw_quiz(
    rules: QuizRules,
    *,
    secret: bytes,
    seen: Seen,
    verifier: AnyVerifier,
    beacon: BeaconValue | None = None,
) -> list[DrawnTask]:
    """Return a round's questions, dataset by dataset in the order of `rules.tasks`.

    The questions are drawn from the judge's part of the keyspace (`swarm_tasks.keyspace`). The key
    is the secret, mixed with `beacon` if the rules name a beacon. The round's number and the
    season's name have no influence.

    The questions differ from each other and from the season's earlier questions. `seen` is a
    function that gets digests of questions and returns those that were asked earlier. QUIZ_FORMAT_1
    and QUIZ_FORMAT_2 do not use `seen`: their questions may repeat earlier ones. They may even
    repeat each other if a dataset has too few questions.

    Raises RefusedError TASK_FOREIGN for rules that this program does not support, TASK_EXHAUSTED if
    a dataset has too few questions left, and the errors of `Verifier.draw`. Raises ValueError if
    there are fewer questions than tasks, or if `beacon.round` is not the beacon round that the
    rules name. If the rules name none, `beacon` must be None.
    """
    if not rules.are_known:
        raise RefusedError(
            ErrorCode.TASK_FOREIGN,
            f"made by {rules.format!r} with {rules.generator!r}, this side has"
            f" {QUIZ_FORMAT!r} with {GENERATOR!r}",
        )
    key = _key_of(rules, secret=secret, value=beacon)
    drawn: list[DrawnTask] = []
    texts: set[str] = set()
    digests: set[int] = set()
    shares = share_questions(rules.tasks, rules.questions)
    for task, share in zip(rules.tasks, shares, strict=True):
        draw = Stream(task, key=key, part=Part.JUDGE, seed=rules.seed, verifier=verifier)
        if rules.may_repeat:
            drawn += draw_distinct(draw, share, texts)
        else:
            drawn += _draw_unasked(draw, share, digests, seen=seen)
    return drawn


def _key_of(rules: QuizRules, *, secret: bytes, value: BeaconValue | None) -> bytes:
    """Return the key with which a round's questions are drawn.

    Raises ValueError if `value.round` is not the beacon round that the rules name. If they name
    none, `value` must be None.
    """
    named = None if rules.beacon is UNSET else rules.beacon.round
    if named != (value and value.round):
        raise ValueError(f"the rules name round {named} of a beacon, not that of {value}")
    return secret if value is None else mix_key(secret, value)


@dataclass(frozen=True)
class Stream:
    """An endless sequence of candidate questions for `task`, numbered from 0.

    Calling the stream with a number draws that candidate. Streams with equal fields have the same
    candidates (`keyspace.keyed_index`).
    """

    task: TaskChoice
    key: bytes
    part: Part
    seed: int
    verifier: AnyVerifier

    def __call__(self, counter: int) -> DrawnTask:
        """Return candidate number `counter`. Raises RefusedError as `Verifier.draw` does."""
        return self.verifier.draw(
            key=self.key,
            part=self.part,
            dataset=self.task.dataset,
            config=self.task.config,
            seed=self.seed,
            counter=counter,
        )


def draw_distinct(stream: Stream, share: int, asked: set[str]) -> list[DrawnTask]:
    """Return the first `share` questions of a stream that differ from each other and from `asked`.

    The texts of these questions are added to `asked`. If the first 19 * `share` questions of the
    stream contain too few such questions, each question after them is accepted, even a repeat.
    Raises RefusedError as `Verifier.draw` does.
    """
    drawn: list[DrawnTask] = []
    for counter in count():
        if len(drawn) == share:
            break
        candidate = stream(counter)
        if candidate.question not in asked or counter >= _DISTINCT_ATTEMPTS * share:
            asked.add(candidate.question)
            drawn.append(candidate)
    return drawn


def _draw_unasked(stream: Stream, share: int, asked: set[int], *, seen: Seen) -> list[DrawnTask]:
    """Return a stream's first `share` questions that are neither in `asked` nor found by `seen`.

    The digests of these questions are added to `asked`. Candidates are drawn in batches, each as
    large as the number of questions still missing; `seen` is called once for each batch.

    Raises RefusedError TASK_EXHAUSTED if too few candidates are new, and as `Verifier.draw` does.
    """
    drawn: list[DrawnTask] = []
    tried = 0
    while missing := share - len(drawn):
        if tried >= _MIN_CANDIDATES + _CANDIDATES_PER_QUESTION * share:
            raise RefusedError(
                ErrorCode.TASK_EXHAUSTED,
                f"{stream.task.dataset} has too few questions left that the season has not asked:"
                f" {len(drawn)} of {share} among {tried} drawn",
            )
        candidates = [stream(counter) for counter in range(tried, tried + missing)]
        tried += missing
        digests = [digest_question(candidate.question) for candidate in candidates]
        already_asked = set(seen(digests))
        for candidate, digest in zip(candidates, digests, strict=True):
            if digest not in already_asked and digest not in asked:
                asked.add(digest)
                drawn.append(candidate)
    return drawn


def share_questions(tasks: Sequence[TaskChoice], total: int) -> list[int]:
    """Return how many of `total` questions each task gets: its share by weight, at least one.

    A task whose share is less than one gets one question, and the other tasks divide the remaining
    questions. Shares are rounded by largest remainders; of equal remainders, those of earlier tasks
    are rounded up first. Fractions are used because sums of floats differ between Python versions.

    Raises ValueError when there are fewer questions than tasks.
    """
    if total < len(tasks):
        raise ValueError(f"{total} questions do not go round {len(tasks)} tasks")
    weights = [Fraction(task.weight) for task in tasks]
    counts = [1] * len(tasks)
    large = list(range(len(tasks)))
    while True:
        remaining = total - (len(tasks) - len(large))
        weight = sum(weights[place] for place in large)
        shares = {place: remaining * weights[place] / weight for place in large}
        if all(share >= 1 for share in shares.values()):
            break
        large = [place for place in large if shares[place] >= 1]
    for place, share in shares.items():
        counts[place] = int(share)
    by_remainder = sorted(large, key=lambda place: int(shares[place]) - shares[place])
    for place in by_remainder[: total - sum(counts)]:
        counts[place] += 1
    return counts
