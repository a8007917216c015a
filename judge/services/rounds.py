"""Rounds are made with sealed questions, and move from phase to phase."""

from datetime import datetime, timedelta

import msgspec
from django.db import connection, transaction
from django.db.models import Exists, Max, OuterRef, Q, QuerySet

from judge.models import Question, Round, Season, Seat
from judge.rules import share_questions
from judge.selectors import current_round, describe_round, task_choices
from swarm_protocol.messages import RoundState
from swarm_tasks.keyspace import Part
from swarm_tasks.verifier import DrawnTask, Verifier
from swarm_web import bus
from swarm_web.nodes.models import Node

# The shortest time between making a round and opening it, so that a countdown can be seen.
LEAD = timedelta(seconds=3)


# ---- making rounds


def ensure_next_round(season: Season, *, now: datetime, verifier: Verifier) -> Round | None:
    """Schedule the season's next round by its cadence, unless one waits or is open."""
    if season.paused or not season.cadence_seconds:
        return None
    if season.rounds.filter(phase__in=[Round.Phase.SCHEDULED, Round.Phase.OPEN]).exists():
        return None
    last = season.rounds.aggregate(last=Max("opens_at"))["last"]
    due = last + timedelta(seconds=season.cadence_seconds) if last else now
    return schedule_round(season, opens_at=max(due, now + LEAD), now=now, verifier=verifier)


def schedule_round(
    season: Season, *, opens_at: datetime, now: datetime, verifier: Verifier
) -> Round:
    """Make a round with its sealed questions, drawn under a secret key of its own.

    Raises RefusedError when a question cannot be drawn.
    """
    judge_round = Round(season=season, **_phases_from(opens_at, season))
    drawn = draw_questions(season, secret=bytes(judge_round.secret), verifier=verifier)
    with transaction.atomic():
        judge_round.number = _next_number()
        judge_round.save()
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
        _ring(judge_round, now=now)
    return judge_round


def draw_questions(season: Season, *, secret: bytes, verifier: Verifier) -> list[DrawnTask]:
    """Draw a round's questions from the judge's part of the key space.

    Questions differ from each other unless a dataset's question space is too small for that.
    """
    tasks = task_choices(season.tasks)
    drawn: dict[str, DrawnTask] = {}
    repeats: list[DrawnTask] = []
    for task, count in zip(tasks, share_questions(tasks, season.questions_per_round), strict=True):
        fresh = 0
        for counter in range(20 * count):
            candidate = verifier.draw(
                key=secret,
                part=Part.JUDGE,
                dataset=task.dataset,
                config=task.config,
                seed=season.seed,
                counter=counter,
            )
            if drawn.setdefault(candidate.question, candidate) is candidate:
                fresh += 1
            elif counter >= 19 * count:
                repeats.append(candidate)
                fresh += 1
            if fresh == count:
                break
    return [*drawn.values(), *repeats]


def _phases_from(opens_at: datetime, season: Season) -> dict[str, datetime]:
    """Return a round's deadlines when it opens at `opens_at`."""
    closes_at = opens_at + timedelta(seconds=season.open_seconds)
    score_by = closes_at + timedelta(seconds=season.scoring_seconds)
    return {"opens_at": opens_at, "closes_at": closes_at, "score_by": score_by}


def _next_number() -> int:
    """Return the next round number; others who number wait until the transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext('judge.round.number'))")
    return 1 + (Round.objects.aggregate(last=Max("number"))["last"] or 0)


# ---- moving rounds on


def open_due_rounds(*, now: datetime) -> list[Round]:
    """Open the rounds whose time has come and invite every node that was there lately.

    Also one that is just reconnecting, after a restart of the site say: a round does not end early
    before it had its chance.
    """
    due = Round.objects.filter(
        phase=Round.Phase.SCHEDULED,
        opens_at__lte=now,
        season__state=Season.State.RUNNING,
        season__paused=False,
    ).select_related("season")
    return [judge_round for judge_round in due.order_by("opens_at") if _open(judge_round, now=now)]


def _open(judge_round: Round, *, now: datetime) -> bool:
    """Open one round, with its whole answering time even when it opens late."""
    another = Round.objects.filter(season=judge_round.season_id, phase=Round.Phase.OPEN)
    with transaction.atomic():
        won = (
            Round.objects.filter(pk=judge_round.pk, phase=Round.Phase.SCHEDULED)
            .exclude(Exists(another))
            .update(phase=Round.Phase.OPEN, **_phases_from(now, judge_round.season))
        )
        if not won:
            return False
        judge_round.refresh_from_db()
        Seat.objects.bulk_create(
            [Seat(round=judge_round, node=node) for node in Node.objects.seen_lately(now=now)],
            ignore_conflicts=True,
        )
        _ring(judge_round, now=now)
    return True


def end_answering(*, now: datetime) -> list[Round]:
    """Move open rounds on to scoring: past their deadline, or when every seat is completed."""
    due = _due_to_end(now=now).select_related("season")
    return [judge_round for judge_round in due if _end_answering(judge_round, now=now)]


def _due_to_end(*, now: datetime) -> QuerySet[Round]:
    seats = Seat.objects.filter(round=OuterRef("pk"))
    complete = Exists(seats) & ~Exists(seats.filter(completed_at=None))
    return Round.objects.filter(phase=Round.Phase.OPEN).filter(Q(closes_at__lte=now) | complete)


def _end_answering(judge_round: Round, *, now: datetime) -> bool:
    """End one round's answering if that is still due once nobody is taking a seat.

    Nodes hold a shared lock on the round while they sit down (`answers.take_seat`): with the
    round locked, a second look sees every seat.
    """
    with transaction.atomic():
        Round.objects.select_for_update().get(pk=judge_round.pk)
        if not _due_to_end(now=now).filter(pk=judge_round.pk).exists():
            return False
        return move_round(judge_round, to=Round.Phase.SCORING, now=now)


def move_round(judge_round: Round, *, to: Round.Phase, now: datetime) -> bool:
    """Move a round on from the phase it was read in; tell whether this call did it."""
    with transaction.atomic():
        won = Round.objects.filter(pk=judge_round.pk, phase=judge_round.phase).update(
            phase=to, closed_at=now if to == Round.Phase.CLOSED else None
        )
        if won:
            judge_round.refresh_from_db()
            _ring(judge_round, now=now)
    return bool(won)


def void_round(judge_round: Round, *, reason: str, now: datetime) -> bool:
    """Take a round out of every score; its data stays."""
    with transaction.atomic():
        others = Round.objects.filter(pk=judge_round.pk).exclude(phase=Round.Phase.VOID)
        won = others.update(phase=Round.Phase.VOID, void_reason=reason)
        if won:
            judge_round.refresh_from_db()
            _ring(judge_round, now=now)
    return bool(won)


def _ring(judge_round: Round, *, now: datetime) -> None:
    """Tell nodes and viewers where the season's rounds stand now."""
    shown = current_round(judge_round.season) or judge_round
    state = RoundState(reply_to=None, round=describe_round(shown), now=now.isoformat())
    bus.ring_nodes(state)
    bus.ring(bus.VIEWERS)
