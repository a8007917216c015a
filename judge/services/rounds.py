"""Rounds move from phase to phase: the engine decides, this file reads the facts and writes.

Every move locks the round's row and looks again, so beats may come twice, at once or not at all.
"""

from collections.abc import Callable
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from judge.engine import (
    BEACON_PATIENCE,
    Facts,
    Phase,
    catch_up,
    due_move,
    lost_time,
    note_tick,
    return_time,
    unserved_time,
)
from judge.models import Answer, Round, Season, Seat
from judge.services.announcing import announce_round
from judge.services.drawing import give_up_round
from judge.services.patience import time_out_round
from judge.services.record import fix_answers, fix_results
from judge.services.scheduling import season_deadlines
from judge.services.scores import write_scores
from swarm_web.nodes.models import Node

# So long nodes take to come back after an outage: a round that opened before would miss them.
RETURN = timedelta(seconds=60)
_UNFINISHED = [Phase.OPEN, Phase.SCORING, Phase.SCHEDULED]


def advance_rounds(*, now: datetime) -> list[Round]:
    """Move every round on as far as the clock allows, and return those that moved.

    Open rounds come first, so that one that ends makes room for the one that waits.
    """
    unfinished = Round.objects.filter(phase__in=_UNFINISHED).select_related("season")
    order = {phase: i for i, phase in enumerate(_UNFINISHED)}
    waiting = sorted(unfinished, key=lambda r: (order[Phase(r.phase)], r.opens_at))
    return [judge_round for judge_round in waiting if _advance(judge_round, now=now)]


def _advance(judge_round: Round, *, now: datetime) -> bool:
    """Move one round on, at most as far as SCORING to CLOSED; tell whether it moved."""
    moved = False
    while due_move(_read_facts(judge_round), now=now) and _move(judge_round, now=now):
        moved = True
    return moved


def _read_facts(judge_round: Round) -> Facts:
    seats = Seat.objects.filter(round=judge_round, came_late=False)
    is_open, is_scoring = judge_round.phase == Phase.OPEN, judge_round.phase == Phase.SCORING
    return Facts(
        phase=Phase(judge_round.phase),
        deadlines=judge_round.deadlines,
        season_active=judge_round.season.is_active,
        another_open=judge_round.phase == Phase.SCHEDULED
        and Round.objects.filter(season=judge_round.season_id, phase=Phase.OPEN).exists(),
        early_advance=judge_round.season.early_advance,
        expected=seats.count() if is_open else 0,
        completed=seats.exclude(completed_at=None).count() if is_open else 0,
        ungraded=count_ungraded(judge_round) if is_scoring else 0,
        drawn=judge_round.is_drawn,
    )


def count_ungraded(judge_round: Round) -> int:
    """Return how many stored answers of the round have no verdict yet."""
    return Answer.objects.filter(question__round=judge_round, score=None).count()


def _move(judge_round: Round, *, now: datetime) -> bool:
    """Make the move that is still due once nobody else can touch the round.

    Nodes hold a shared lock on the round while they sit down or answer (`judge.services.answers`):
    with the round locked, the second look sees every seat and every answer.
    """
    with transaction.atomic():
        locked = Round.objects.select_for_update(of=("self",)).select_related("season")
        fresh = locked.filter(pk=judge_round.pk).first()
        # It is gone if its season ended before it opened.
        if fresh is None or fresh.phase != judge_round.phase:
            return False
        now = catch_up(fresh.season.watched_at, now=now)
        to = due_move(_read_facts(fresh), now=now)
        if to is None:
            return False
        _MOVES[to](fresh, now)
        announce_round(fresh, now=now)
    judge_round.refresh_from_db()
    return True


def _open(judge_round: Round, now: datetime) -> None:
    """Open a round, with its whole answering time even when it opens late.

    Every node that was there lately is invited, also one that is just reconnecting, after a
    restart of the site say: a round does not end early before it had its chance.
    """
    deadlines = season_deadlines(judge_round.season, opens_at=now)
    judge_round.opens_at = deadlines.opens_at
    judge_round.closes_at = deadlines.closes_at
    judge_round.score_by = deadlines.score_by
    judge_round.phase = Phase.OPEN
    judge_round.save(update_fields=["opens_at", "closes_at", "score_by", "phase"])
    Seat.objects.bulk_create(
        [Seat(round=judge_round, node=node) for node in Node.objects.seen_lately(now=now)],
        ignore_conflicts=True,
    )


def _end_answering(judge_round: Round, now: datetime) -> None:
    judge_round.phase = Phase.SCORING
    judge_round.save(update_fields=["phase"])
    fix_answers(judge_round, now=now)


def _close(judge_round: Round, now: datetime) -> None:
    judge_round.phase, judge_round.closed_at = Phase.CLOSED, now
    judge_round.save(update_fields=["phase", "closed_at"])
    time_out_round(judge_round)
    write_scores(judge_round)
    fix_results(judge_round, "closed", now=now, secret=bytes(judge_round.secret).hex())


def _give_up(judge_round: Round, now: datetime) -> None:
    minutes = BEACON_PATIENCE // timedelta(minutes=1)
    give_up_round(judge_round, f"the public beacon gave no value within {minutes} minutes", now=now)


_MOVES: dict[Phase, Callable[[Round, datetime], None]] = {
    Phase.OPEN: _open,
    Phase.SCORING: _end_answering,
    Phase.CLOSED: _close,
    Phase.VOID: _give_up,
}


# ---- outages


def watch_seasons(*, now: datetime, silence: timedelta | None = None) -> None:
    """Note that the judge's clock looks, and give back the time in which the site was away.

    That is: the clock stood still, or no web process was ready; `silence` is how long ago one was.
    """
    busy = Q(rounds__phase__in=[Phase.OPEN, Phase.SCORING]) | Q(state=Season.State.RUNNING)
    for pk in Season.objects.filter(busy).values_list("pk", flat=True).distinct():
        _watch(pk, silence=silence, now=now)


def _watch(season_id: int, *, silence: timedelta | None, now: datetime) -> None:
    """Move the deadlines of a season's rounds by what an outage cost them, once."""
    within = timedelta(seconds=settings.GATEWAY_RETURN_WITHIN_S)
    with transaction.atomic():
        season = Season.objects.select_for_update().get(pk=season_id)
        lost = lost_time(season.watched_at, now=now)
        unserved = unserved_time(season.watched_at, silence=silence, within=within, now=now)
        if lost:
            _give_back(season, max(lost, unserved), opens_from=now + RETURN, now=now)
        elif unserved and silence is not None:
            opens_from = now + return_time(silence, within=within)
            _give_back(season, unserved, opens_from=opens_from, now=now)
        season.watched_at = note_tick(season.watched_at, now=now)
        season.save(update_fields=["watched_at"])


def _give_back(season: Season, lost: timedelta, *, opens_from: datetime, now: datetime) -> None:
    """Move deadlines by what was lost; what has not opened yet opens when nodes are back."""
    rounds = season.rounds.select_for_update(of=("self",)).filter(phase__in=_UNFINISHED)
    for judge_round in rounds:
        if judge_round.phase == Phase.SCHEDULED:
            opens_at = max(judge_round.opens_at, opens_from)
            later = season_deadlines(season, opens_at=opens_at)
        else:
            later = judge_round.deadlines.give_back(lost)
        judge_round.opens_at = later.opens_at
        if judge_round.phase != Phase.SCORING:
            judge_round.closes_at = later.closes_at
        judge_round.score_by = later.score_by
        judge_round.save(update_fields=["opens_at", "closes_at", "score_by"])
        announce_round(judge_round, now=now)
