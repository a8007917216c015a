"""Rounds are made: numbered, with sealed questions and a public commitment to them.

In a season with a public beacon the commitment comes first, and the questions are drawn when the
beacon has published the value that the rules name (`judge.services.drawing`).
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec
from django.db import connection, transaction
from django.db.models import Max

from judge.engine import Deadlines, set_deadlines
from judge.models import Round, Season
from judge.repeats import Asked, read_asked
from judge.selectors.seasons import task_choices
from judge.services.announcing import announce_round
from judge.services.drawing import digest_questions, halt, store_questions
from judge.services.record import fix_commitment
from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_tasks.answers import known_rules
from swarm_tasks.beacon import LEAD as BEACON_LEAD
from swarm_tasks.beacon import QUICKNET, next_beacon
from swarm_tasks.pool import AnyVerifier
from swarm_tasks.quiz import QuizRules, commit_quiz, draw_quiz, with_answers, with_beacon
from swarm_tasks.verifier import DrawnTask

# The shortest time between making a round and opening it, so that a countdown can be seen.
LEAD = timedelta(seconds=3)
# How long fetching a beacon's value and drawing with it may take.
BEACON_SLACK = timedelta(seconds=15)


@dataclass(frozen=True)
class Draft:
    """A round that is not stored yet, its questions, and what its season had asked before.

    It has no questions if they wait for a public beacon.
    """

    round: Round
    drawn: list[DrawnTask]
    asked: Asked


def ensure_next_round(season: Season, *, now: datetime, verifier: AnyVerifier) -> Round | None:
    """Schedule the season's next round by its cadence, unless one waits or is open.

    Drawing takes seconds, so the season is looked at once more, locked, before the round is made:
    another worker may have been faster, or the season may have ended. A season without questions
    is halted, and says why.
    """
    if not _lacks_round(season):
        return None
    last = season.rounds.aggregate(last=Max("opens_at"))["last"]
    due = last + timedelta(seconds=season.cadence_seconds) if last else now
    try:
        draft = _draw(season, opens_at=max(due, now + LEAD), verifier=verifier)
    except RefusedError as refusal:
        if refusal.code == ErrorCode.TASK_EXHAUSTED:
            halt(season, refusal)
        elif refusal.code != ErrorCode.ROUND_UNDRAWN:
            raise
        return None
    with transaction.atomic():
        if not _lacks_round(Season.objects.select_for_update().get(pk=season.pk)):
            return None
        return _make(draft, now=now)


def _lacks_round(season: Season) -> bool:
    """Tell whether the season opens rounds by itself, and none of them waits or is open."""
    ahead = season.rounds.filter(phase__in=[Round.Phase.SCHEDULED, Round.Phase.OPEN])
    return season.is_active and season.cadence_seconds > 0 and not ahead.exists()


def schedule_round(
    season: Season, *, opens_at: datetime, now: datetime, verifier: AnyVerifier
) -> Round:
    """Make a round with its sealed questions, drawn under a secret key of its own.

    If another round of the season was made meanwhile, its questions are drawn again. Raises
    RefusedError when a question cannot be drawn, or the season's last round waits for its own.
    """
    while True:
        draft = _draw(season, opens_at=opens_at, verifier=verifier)
        with transaction.atomic():
            made = _make(draft, now=now)
        if made is not None:
            return made


def _draw(season: Season, *, opens_at: datetime, verifier: AnyVerifier) -> Draft:
    """Draw the questions of one more round, if they need not wait. Raises RefusedError."""
    deadlines = season_deadlines(season, opens_at=opens_at)
    judge_round = Round(
        season=season,
        opens_at=deadlines.opens_at,
        closes_at=deadlines.closes_at,
        score_by=deadlines.score_by,
    )
    asked = read_asked(season)
    if season.public_beacon:
        return Draft(judge_round, [], asked)
    rules, secret = _rules(season, number=0, asked=asked), bytes(judge_round.secret)
    drawn = draw_quiz(rules, secret=secret, seen=asked.seen, verifier=verifier)
    judge_round.digests = digest_questions(drawn)
    return Draft(judge_round, drawn, asked)


def _make(draft: Draft, *, now: datetime) -> Round | None:
    """Store a round with its questions, and tell everybody; for use in a transaction.

    None if the season has another round since the questions were drawn: they might be its own.
    """
    judge_round, season = draft.round, draft.round.season
    judge_round.number = _next_number()
    if season.rounds.filter(number__gt=draft.asked.last).exists():
        return None
    rules = _rules(season, number=judge_round.number, asked=draft.asked)
    if season.public_beacon:
        rules = _name_beacon(judge_round, rules, now=now)
    judge_round.rules = msgspec.to_builtins(rules)
    judge_round.commitment = commit_quiz(rules, secret=bytes(judge_round.secret))
    judge_round.save()
    store_questions(judge_round, draft.drawn)
    fix_commitment(judge_round, now=now)
    announce_round(judge_round, now=now)
    return judge_round


def _name_beacon(judge_round: Round, rules: QuizRules, *, now: datetime) -> QuizRules:
    """Let the rules name a value that the beacon publishes later, and the round open after it."""
    beacon = next_beacon(QUICKNET, after=now + BEACON_LEAD)
    opens_at = max(judge_round.opens_at, beacon.emitted_at + BEACON_SLACK)
    deadlines = season_deadlines(judge_round.season, opens_at=opens_at)
    judge_round.opens_at = deadlines.opens_at
    judge_round.closes_at, judge_round.score_by = deadlines.closes_at, deadlines.score_by
    return with_beacon(rules, beacon)


def season_deadlines(season: Season, *, opens_at: datetime) -> Deadlines:
    """Return the deadlines of a round of the season."""
    return set_deadlines(
        opens_at, open_seconds=season.open_seconds, scoring_seconds=season.scoring_seconds
    )


def _rules(season: Season, *, number: int, asked: Asked) -> QuizRules:
    """Return what is committed to; the questions do not depend on the round's number."""
    rules = QuizRules(
        round=number,
        season=season.name,
        seed=season.seed,
        generator=season.generator,
        tasks=task_choices(season.tasks),
        questions=season.questions_per_round,
        asked=asked.chain,
    )
    return with_answers(rules, known_rules(season.answer_rules))


def _next_number() -> int:
    """Return the next round number; others who number wait until the transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext('judge.round.number'))")
    return 1 + (Round.objects.aggregate(last=Max("number"))["last"] or 0)
