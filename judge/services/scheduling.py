"""Services that make rounds. Each round has a number, a public commitment and sealed questions.

In a season with a public beacon, the questions are drawn after the commitment is published, once
the beacon has published the value that the round's rules name (`swarm_tasks.beacon`). That value is
fetched outside the judge's tick, so the tick never waits for it. `judge.engine` voids a round that
waits too long.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec
from django.db import connection, transaction
from django.db.models import Max

from judge.engine import Deadlines, Phase, set_deadlines
from judge.models import Question, Round, Season
from judge.repeats import AskedQuestions, read_asked, seen_before
from judge.selectors.rounds import undrawn_rounds
from judge.selectors.seasons import task_choices
from judge.services.announcing import announce_round
from judge.services.record import record_commitment, record_void
from judge.services.seasons import halt_season
from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_tasks.answers import find_rules
from swarm_tasks.asked import digest_question
from swarm_tasks.beacon import LEAD as BEACON_LEAD
from swarm_tasks.beacon import QUICKNET, Beacon, BeaconValue, next_beacon
from swarm_tasks.pool import AnyVerifier
from swarm_tasks.quiz import QuizRules, commit_quiz, draw_quiz, with_answers, with_beacon
from swarm_tasks.verifier import DrawnTask

# The shortest time from when a round begins to be made until it opens, so that a countdown can be
# seen. Drawing the questions takes a part of this time.
LEAD_TIME = timedelta(seconds=3)
# How long fetching a beacon's value and drawing questions with it may take.
BEACON_SLACK = timedelta(seconds=15)
# drand's servers have a value about a second after its time.
_BEACON_DELAY = timedelta(seconds=1)

# Returns a beacon's value, or None while no server has it.
Fetch = Callable[[Beacon], BeaconValue | None]


@dataclass(frozen=True)
class RoundDraft:
    """A round that is not stored yet.

    `asked` is the record of the questions that the season had asked when the round was drafted.
    `drawn` has the round's questions; it is empty if they depend on a public beacon.
    """

    round: Round
    drawn: list[DrawnTask]
    asked: AskedQuestions


# ---- making rounds


def ensure_next_round(season: Season, *, now: datetime, verifier: AnyVerifier) -> Round | None:
    """Schedule the season's next round by its cadence and return it; None if no round is made.

    No round is made if the season is not running, is paused, has no cadence, or has a scheduled or
    open round. If the season has run out of questions, it is paused (`halt_season`) and no round is
    made. Raises RefusedError if drawing the questions fails for another reason.

    Drawing takes seconds, so the season is locked and checked again before the round is stored: no
    round is made if another worker made one meanwhile, or if the season ended or was paused.
    """
    if not _lacks_round(season):
        return None
    last = season.rounds.aggregate(last=Max("opens_at"))["last"]
    due = last + timedelta(seconds=season.cadence_seconds) if last else now
    try:
        draft = _draft_round(season, opens_at=max(due, now + LEAD_TIME), verifier=verifier)
    except RefusedError as refusal:
        if refusal.code == ErrorCode.TASK_EXHAUSTED:
            halt_season(season, refusal)
        elif refusal.code != ErrorCode.ROUND_UNDRAWN:
            raise
        return None
    with transaction.atomic():
        if not _lacks_round(Season.objects.select_for_update().get(pk=season.pk)):
            return None
        return _store_draft(draft, now=now)


def _lacks_round(season: Season) -> bool:
    """Return whether the season runs unpaused, has a cadence, and no scheduled or open round."""
    ahead = season.rounds.filter(phase__in=[Phase.SCHEDULED, Phase.OPEN])
    return season.is_active and season.cadence_seconds > 0 and not ahead.exists()


def schedule_round(
    season: Season, *, opens_at: datetime, now: datetime, verifier: AnyVerifier
) -> Round:
    """Store, announce and return a new round that is to open at `opens_at`.

    The questions are drawn from the round's secret. If another round of the season is stored during
    the drawing, the round gets a new secret and other questions. In a season with a public beacon,
    the questions are drawn later, and the round may open later than `opens_at`. Raises RefusedError
    if a question cannot be drawn, if the season has ended, or if its newest round is scheduled and
    has no questions yet.
    """
    while True:
        draft = _draft_round(season, opens_at=opens_at, verifier=verifier)
        with transaction.atomic():
            # Locked, because the season may end while the questions are drawn.
            if Season.objects.select_for_update().get(pk=season.pk).state == Season.State.ENDED:
                raise RefusedError(
                    ErrorCode.SEASON_NONE, f"{season} has ended", fix="Choose the running season."
                )
            judge_round = _store_draft(draft, now=now)
        if judge_round is not None:
            return judge_round


def _draft_round(season: Season, *, opens_at: datetime, verifier: AnyVerifier) -> RoundDraft:
    """Return a draft of the season's next round, without questions if they depend on a beacon.

    Raises RefusedError if a question cannot be drawn, or if the newest round has no questions yet.
    """
    judge_round = Round(season=season)
    judge_round.deadlines = season_deadlines(season, opens_at=opens_at)
    asked = read_asked(season)
    if season.public_beacon:
        return RoundDraft(judge_round, [], asked)
    rules, secret = _build_rules(season, number=0, asked=asked), bytes(judge_round.secret)
    drawn = draw_quiz(rules, secret=secret, seen=asked.seen, verifier=verifier)
    judge_round.digests = _digest_questions(drawn)
    return RoundDraft(judge_round, drawn, asked)


def _store_draft(draft: RoundDraft, *, now: datetime) -> Round | None:
    """Store and announce the round of a draft with its questions; must be called in a transaction.

    Returns None if another round of the season was stored after the draft was made, because the two
    rounds might ask the same questions.
    """
    judge_round, season = draft.round, draft.round.season
    judge_round.number = _next_number()
    if season.rounds.filter(number__gt=draft.asked.last).exists():
        return None
    rules = _build_rules(season, number=judge_round.number, asked=draft.asked)
    if season.public_beacon:
        rules = _assign_beacon(judge_round, rules, now=now)
    judge_round.rules = msgspec.to_builtins(rules)
    judge_round.commitment = commit_quiz(rules, secret=bytes(judge_round.secret))
    judge_round.save()
    _store_questions(judge_round, draft.drawn)
    record_commitment(judge_round, now=now)
    announce_round(judge_round, now=now)
    return judge_round


def _assign_beacon(judge_round: Round, rules: QuizRules, *, now: datetime) -> QuizRules:
    """Return the rules with the name of a beacon value that is published later.

    Postpones the round if necessary, so that it opens at least BEACON_SLACK after the publication.
    """
    beacon = next_beacon(QUICKNET, after=now + BEACON_LEAD)
    opens_at = max(judge_round.opens_at, beacon.emitted_at + BEACON_SLACK)
    judge_round.deadlines = season_deadlines(judge_round.season, opens_at=opens_at)
    return with_beacon(rules, beacon)


def season_deadlines(season: Season, *, opens_at: datetime) -> Deadlines:
    """Return the deadlines of a round of the season."""
    return set_deadlines(
        opens_at, open_seconds=season.open_seconds, scoring_seconds=season.scoring_seconds
    )


def _build_rules(season: Season, *, number: int, asked: AskedQuestions) -> QuizRules:
    """Return the rules of round `number`, without a beacon.

    The number does not influence which questions are drawn.
    """
    rules = QuizRules(
        round=number,
        season=season.name,
        seed=season.seed,
        generator=season.generator,
        tasks=task_choices(season.tasks),
        questions=season.questions_per_round,
        asked=asked.chain,
    )
    return with_answers(rules, find_rules(season.answer_rules))


def _next_number() -> int:
    """Return the next round number; other callers wait until this caller's transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext('judge.round.number'))")
    return 1 + (Round.objects.aggregate(last=Max("number"))["last"] or 0)


def _digest_questions(drawn: Sequence[DrawnTask]) -> list[int]:
    return [digest_question(task.question) for task in drawn]


def _store_questions(judge_round: Round, drawn: Sequence[DrawnTask]) -> None:
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


# ---- rounds that wait for a public beacon


def draw_waiting_rounds(*, now: datetime, fetch: Fetch, verifier: AnyVerifier) -> list[Round]:
    """Draw the questions of rounds whose beacon value is published.

    Returns the rounds that got their questions in this call. If a dataset has too few questions
    left, the round becomes void and its season is paused. Raises RefusedError if the questions
    cannot be drawn for another reason.

    This function may run twice or concurrently: every run draws the same questions, and only the
    first run stores them.
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
    if not isinstance(rules.beacon, Beacon) or now < rules.beacon.emitted_at + _BEACON_DELAY:
        return False
    value = fetch(rules.beacon)
    if value is None:
        return False
    seen, secret = seen_before(judge_round), bytes(judge_round.secret)
    drawn = None
    try:
        drawn = draw_quiz(rules, secret=secret, seen=seen, verifier=verifier, beacon=value)
    except RefusedError as refusal:
        if refusal.code != ErrorCode.TASK_EXHAUSTED:
            raise
        halt_season(judge_round.season, refusal)
    with transaction.atomic():
        fresh = undrawn_rounds().select_for_update().filter(pk=judge_round.pk).first()
        if fresh is None:
            return False
        if drawn is None:
            void_undrawn_round(fresh, "the season has no questions left", now=now)
            announce_round(fresh, now=now)
            return False
        fresh.beacon = msgspec.to_builtins(value)
        fresh.digests = _digest_questions(drawn)
        fresh.save(update_fields=["beacon", "digests"])
        _store_questions(fresh, drawn)
    return True


def void_undrawn_round(judge_round: Round, reason: str, *, now: datetime) -> None:
    """Void a round that has no questions; call it in a transaction that locked the row."""
    judge_round.change_phase(Phase.VOID, void_reason=reason)
    record_void(judge_round, now=now)
