"""A round's questions are drawn and stored; those of some rounds wait for a public beacon.

What such a round waits for is in its rules (`swarm_tasks.beacon`). Nothing else waits with it: the
value is fetched apart from the judge's tick, and `judge.engine` gives a round up that waits too
long.
"""

import logging
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

import msgspec
from django.db import transaction

from judge.models import Question, Round, Season
from judge.repeats import seen_before
from judge.selectors.rounds import undrawn_rounds
from judge.services.announcing import announce_round
from judge.services.record import fix_void
from judge.services.seasons import halt_season
from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_tasks.asked import digest_question
from swarm_tasks.beacon import Beacon, BeaconValue
from swarm_tasks.pool import AnyVerifier
from swarm_tasks.quiz import QuizRules, draw_quiz
from swarm_tasks.verifier import DrawnTask

logger = logging.getLogger(__name__)

# Returns the value of a beacon, or None as long as nobody gives it.
Fetch = Callable[[Beacon], BeaconValue | None]

# Servers of drand have a value about a second after its time.
_SPREADING = timedelta(seconds=1)


def draw_waiting_rounds(*, now: datetime, fetch: Fetch, verifier: AnyVerifier) -> list[Round]:
    """Draw the questions of rounds whose beacon has spoken, and return these rounds.

    Safe to run twice or at once: the first one counts, and both would draw the same.
    """
    return [
        judge_round
        for judge_round in undrawn_rounds().select_related("season")
        if _draw_waiting(judge_round, now=now, fetch=fetch, verifier=verifier)
    ]


def _draw_waiting(
    judge_round: Round, *, now: datetime, fetch: Fetch, verifier: AnyVerifier
) -> bool:
    rules = msgspec.convert(judge_round.rules, QuizRules)
    if not isinstance(rules.beacon, Beacon) or now < rules.beacon.emitted_at + _SPREADING:
        return False
    value = fetch(rules.beacon)
    if value is None:
        return False
    try:
        drawn = _draw(judge_round, rules, value, verifier=verifier)
    except RefusedError as refusal:
        if refusal.code != ErrorCode.TASK_EXHAUSTED:
            raise
        return _run_out(judge_round, refusal, now=now)
    with transaction.atomic():
        fresh = undrawn_rounds().select_for_update().filter(pk=judge_round.pk).first()
        if fresh is None:
            return False
        fresh.beacon = msgspec.to_builtins(value)
        fresh.digests = digest_questions(drawn)
        fresh.save(update_fields=["beacon", "digests"])
        store_questions(fresh, drawn)
    return True


def _draw(
    judge_round: Round, rules: QuizRules, value: BeaconValue, *, verifier: AnyVerifier
) -> list[DrawnTask]:
    """Draw the questions of a round that waited. Raises RefusedError."""
    seen, secret = seen_before(judge_round), bytes(judge_round.secret)
    return draw_quiz(rules, secret=secret, seen=seen, verifier=verifier, beacon=value)


def _run_out(judge_round: Round, refusal: RefusedError, *, now: datetime) -> bool:
    """Give a round up that the season has no questions for, and halt the season."""
    halt(judge_round.season, refusal)
    with transaction.atomic():
        fresh = undrawn_rounds().select_for_update().filter(pk=judge_round.pk).first()
        if fresh is not None:
            give_up_round(fresh, "the season has no questions left", now=now)
            announce_round(fresh, now=now)
    return False


def halt(season: Season, refusal: RefusedError) -> None:
    """Pause a season that has no questions left, which its operator should hear of."""
    logger.error("season %s opens no more rounds: %s", season, refusal)
    halt_season(season, refusal)


def give_up_round(judge_round: Round, reason: str, *, now: datetime) -> None:
    """Make a round void that has no questions; for use in a transaction that locked it."""
    judge_round.phase, judge_round.void_reason = Round.Phase.VOID, reason
    judge_round.save(update_fields=["phase", "void_reason"])
    fix_void(judge_round, now=now)


# ---- any round


def digest_questions(drawn: Sequence[DrawnTask]) -> list[int]:
    """Return the digests of questions, in order."""
    return [digest_question(task.question) for task in drawn]


def store_questions(judge_round: Round, drawn: Sequence[DrawnTask]) -> None:
    """Store a round's questions, sealed, in order."""
    Question.objects.bulk_create(
        Question(
            round=judge_round,
            position=position,
            dataset=task.spec.dataset,
            spec=msgspec.to_builtins(task.spec),
            prompt=task.question,
        )
        for position, task in enumerate(drawn, start=1)
    )
