"""Decodes the published records of a round into structs with size limits; no I/O.

The site is being checked, so its data are not trusted: data that are too large or of the wrong type
raise UncheckableError.
"""

import re
from datetime import datetime
from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from node_client.display.terminal import fold_line
from node_client.errors import UncheckableError
from swarm_protocol.messages import Id, Name, RoundPhase, Share, TaskSpec, Text
from swarm_tasks.allowlist import GENERATOR
from swarm_tasks.answers import NEWEST_RULES
from swarm_tasks.asked import DIGEST_BYTES
from swarm_tasks.beacon import BeaconValue
from swarm_tasks.quiz import QUIZ_FORMAT, QuizRules

MAX_QUESTIONS = 256
MAX_NODES = 100_000
# Far more than any question of an allowed dataset.
MAX_PROMPT_CHARS = 1 << 16
MAX_WEIGHT = 1e6

UPDATE = "Install the client that the coordinator's join page names."
OTHER_SITE = f"Check that the address is a coordinator's. {UPDATE}"

Hex = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
_DIGESTS = r"^([0-9a-f]{16})*\Z"
_MAX_DIGESTS_CHARS = 2 * DIGEST_BYTES * MAX_QUESTIONS
Tally = Annotated[int, Meta(ge=0, le=MAX_QUESTIONS)]

Record = TypeVar("Record", bound=Struct)


class PublishedQuestion(Struct, frozen=True):
    """A question; `position` counts from 1."""

    id: Id
    position: Annotated[int, Meta(ge=0, le=MAX_QUESTIONS)]
    dataset: Name
    prompt: Annotated[str, Meta(max_length=MAX_PROMPT_CHARS)]
    spec: TaskSpec


class PublishedScore(Struct, frozen=True):
    """A node's result; `cells` maps each dataset to (correct, n).

    `score` and its 95 % `interval` are fractions, None for an absent node. `reason` says why the
    node is absent or why its result is incomplete; otherwise it is empty.
    """

    node: Name
    status: Literal["scored", "absent"]
    score: Share | None
    n: Tally
    correct: Tally
    cells: Annotated[dict[Name, tuple[Tally, Tally]], Meta(max_length=MAX_QUESTIONS)]
    model: Annotated[str, Meta(max_length=200)] = ""
    arm: Annotated[str, Meta(max_length=16)] = ""
    interval: tuple[Share, Share] | None = None
    reason: Annotated[str, Meta(max_length=64)] = ""


class PublishedRound(Struct, frozen=True):
    """The published record of a closed round, without its answers.

    `answers_root` and `results_root` are Merkle roots, empty for rounds older than the chain.
    `beacon` is the public beacon's value, None if the rules name no beacon.
    """

    commitment: Hex
    secret: Hex
    rules: QuizRules
    questions: Annotated[list[PublishedQuestion], Meta(max_length=MAX_QUESTIONS)]
    scores: Annotated[list[PublishedScore], Meta(max_length=MAX_NODES)]
    answers_root: str = ""
    results_root: str = ""
    beacon: BeaconValue | None = None


class PublishedAnswer(Struct, frozen=True):
    """A node's answer to the question with the id `question`.

    `score`, `solved` and `verdict` are the judge's results, None if the answer was not graded in
    time. `signature` is the node's signature and `key` its public key; an unsigned answer has
    neither.
    """

    node: Name
    question: Id
    text: Text
    score: Share | None
    solved: bool | None
    verdict: Annotated[str, Meta(max_length=64)] | None = None
    key: Annotated[str, Meta(max_length=64)] | None = None
    signature: Annotated[str, Meta(max_length=128)] = ""


class PublishedAsked(Struct, frozen=True):
    """An earlier round of the season.

    `questions` has the concatenated digests of the round's questions, in hex. `entry` is the
    round's entry in the chain of asked questions (`swarm_tasks.asked`), a hash of `seal` and the
    digests. While the round is sealed, `seal` and `questions` are None.
    """

    round: Annotated[int, Meta(ge=0)]
    entry: Hex
    seal: Hex | None = None
    questions: Annotated[str, Meta(pattern=_DIGESTS, max_length=_MAX_DIGESTS_CHARS)] | None = None


class _Phase(Struct):
    phase: RoundPhase
    commitment: str = ""


def read_round(raw: bytes) -> PublishedRound:
    """Parse the record of a closed round, and sort its questions by position.

    Raises UncheckableError for a round that is not closed or has no commitment, for an unreadable
    record, and for rules that this client does not know or that no coordinator would use.
    """
    head = decode(raw, _Phase, what="record of the round")
    if head.phase == "void":
        raise UncheckableError(
            "This round is void, so it does not count.", fix="Check another one."
        )
    if head.phase != "closed":
        raise UncheckableError(
            f"This round is {head.phase}: its questions are still sealed.",
            fix="Check it again when it has closed; the round's page says when.",
        )
    if not head.commitment:
        raise UncheckableError(
            "This round was made before rounds had commitments.", fix="Check a later one."
        )
    published = decode(raw, PublishedRound, what="record of the round")
    _check_rules(published.rules)
    questions = sorted(published.questions, key=lambda question: question.position)
    return msgspec.structs.replace(published, questions=questions)


def read_time(text: str) -> datetime | None:
    """Parse a time in ISO 8601 with a time zone; None if it is invalid."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else None


def read_answer(line: bytes) -> PublishedAnswer:
    """Parse a line of the published answers. Raises UncheckableError if it is not valid."""
    return decode(line, PublishedAnswer, what="record of the answers")


def read_asked(line: bytes) -> PublishedAsked:
    """Parse a line of the site's record of earlier rounds.

    Raises UncheckableError if it is not valid.
    """
    return decode(line, PublishedAsked, what="record of the earlier rounds")


def decode(raw: bytes, kind: type[Record], *, what: str, fix: str = OTHER_SITE) -> Record:
    """Decode JSON from the site into a struct of the type `kind`.

    Raises UncheckableError if that fails. `what` names the record in the error's message, and `fix`
    is the error's remedy.
    """
    try:
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise UncheckableError(
            f"The site's {what} cannot be read: {fold_line(str(problem))}.", fix=fix
        ) from problem


def _check_rules(rules: QuizRules) -> None:
    """Raise UncheckableError unless this client can draw a quiz by these rules."""
    if not rules.are_known:
        read = "" if rules.answers is UNSET else f", {rules.answers}"
        theirs = f"{rules.format}{read} with {rules.generator}"
        ours = f"{QUIZ_FORMAT}, {NEWEST_RULES} with {GENERATOR}"
        raise UncheckableError(
            f"The round was drawn by {fold_line(theirs, limit=80)}; this client supports {ours}.",
            fix=UPDATE,
        )
    bound = rules.asked is UNSET if rules.may_repeat else _is_chain(rules.asked)
    sized = 1 <= len(rules.tasks) <= rules.questions <= MAX_QUESTIONS
    # A comparison with NaN is false, so this refuses it too.
    if not bound or not sized or not all(0 < task.weight <= MAX_WEIGHT for task in rules.tasks):
        raise UncheckableError(
            "No quiz can be drawn by the rules that the site published.",
            fix="Report this to the operator: a coordinator creates no such round.",
        )


def _is_chain(asked: str | UnsetType) -> bool:
    return isinstance(asked, str) and re.fullmatch(r"[0-9a-f]{64}", asked) is not None
