"""Services that change the phases of rounds; `judge.engine` decides which changes are due.

Every change locks the round's row and then checks again that it is due, so ticks may repeat,
overlap or be missed.
"""

from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from judge.engine import (
    BEACON_TIMEOUT,
    Phase,
    RoundFacts,
    latest_tick,
    lost_time,
    next_phase,
    return_time,
    tick_time,
    unserved_time,
)
from judge.models import Answer, Round, Season, Seat
from judge.services.announcing import announce_round
from judge.services.patience import time_out
from judge.services.record import record_answers, record_results
from judge.services.scheduling import season_deadlines, void_undrawn_round
from judge.services.scores import write_scores
from swarm_web.nodes.models import Node

# How long nodes take to reconnect after an outage; a round that opens earlier would miss them.
RETURN_TIME = timedelta(seconds=60)
_UNFINISHED = [Phase.OPEN, Phase.SCORING, Phase.SCHEDULED]


def advance_rounds(*, now: datetime) -> list[Round]:
    """Advance every round as far as `next_phase` allows, and return those that changed phase.

    Open rounds come first: when one ends, the next scheduled one may open.
    """
    unfinished = Round.objects.filter(phase__in=_UNFINISHED).select_related("season")
    order = {phase: i for i, phase in enumerate(_UNFINISHED)}
    waiting = sorted(unfinished, key=lambda r: (order[Phase(r.phase)], r.opens_at))
    return [judge_round for judge_round in waiting if _advance(judge_round, now=now)]


def _advance(judge_round: Round, *, now: datetime) -> bool:
    """Advance one round as far as `next_phase` allows; return whether it changed phase."""
    changed = False
    while next_phase(_read_facts(judge_round), now=now) and _change_phase(judge_round, now=now):
        changed = True
    return changed


def _read_facts(judge_round: Round) -> RoundFacts:
    seats = Seat.objects.filter(round=judge_round, came_late=False)
    is_open, is_scoring = judge_round.phase == Phase.OPEN, judge_round.phase == Phase.SCORING
    return RoundFacts(
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
    """Return how many stored answers of the round are not graded yet."""
    return Answer.objects.filter(question__round=judge_round, score=None).count()


def _change_phase(judge_round: Round, *, now: datetime) -> bool:
    """Lock the round and change its phase if this is still due; return whether it was changed.

    Nodes hold a shared lock on the round while they take a seat or submit answers
    (`judge.services.answers`), so the check under the lock includes every seat and answer.
    """
    with transaction.atomic():
        locked = Round.objects.select_for_update(of=("self",)).select_related("season")
        fresh = locked.filter(pk=judge_round.pk).first()
        # A round is deleted if its season ends before it opens.
        if fresh is None or fresh.phase != judge_round.phase:
            return False
        now = tick_time(fresh.season.watched_at, now=now)
        target = next_phase(_read_facts(fresh), now=now)
        if target is None:
            return False
        _ENTER_PHASE[target](fresh, now)
        announce_round(fresh, now=now)
    judge_round.refresh_from_db()
    return True


def _open(judge_round: Round, now: datetime) -> None:
    """Open a round with its full answering time, even if it opens late.

    Every node that was seen in the last 45 s is invited, even one that is just reconnecting, for
    example after a restart of the site. The round then cannot end early without this node's
    answers.
    """
    deadlines = season_deadlines(judge_round.season, opens_at=now)
    judge_round.change_phase(Phase.OPEN, **asdict(deadlines))
    Seat.objects.bulk_create(
        [Seat(round=judge_round, node=node) for node in Node.objects.seen_recently(now=now)],
        ignore_conflicts=True,
    )


def _end_answering(judge_round: Round, now: datetime) -> None:
    judge_round.change_phase(Phase.SCORING)
    record_answers(judge_round, now=now)


def _close(judge_round: Round, now: datetime) -> None:
    judge_round.change_phase(Phase.CLOSED, closed_at=now)
    time_out(Answer.objects.filter(question__round=judge_round))
    write_scores(judge_round)
    record_results(judge_round, "closed", now=now, secret=bytes(judge_round.secret).hex())


def _void(judge_round: Round, now: datetime) -> None:
    minutes = BEACON_TIMEOUT // timedelta(minutes=1)
    reason = f"the public beacon gave no value within {minutes} minutes"
    void_undrawn_round(judge_round, reason, now=now)


_ENTER_PHASE: dict[Phase, Callable[[Round, datetime], None]] = {
    Phase.OPEN: _open,
    Phase.SCORING: _end_answering,
    Phase.CLOSED: _close,
    Phase.VOID: _void,
}


# ---- outages


def watch_seasons(*, now: datetime, silence: timedelta | None = None) -> None:
    """Record a tick of the judge's clock, and extend deadlines by the length of an outage.

    During an outage, either the clock does not tick (`lost_time`), or no web process is ready
    (`unserved_time`). In the second case, deadlines are extended further, by the time that nodes
    need to reconnect. `silence` is the time since a web process was last ready, None if unknown.
    """
    busy = Q(rounds__phase__in=[Phase.OPEN, Phase.SCORING]) | Q(state=Season.State.RUNNING)
    for pk in Season.objects.filter(busy).values_list("pk", flat=True).distinct():
        _watch(pk, silence=silence, now=now)


def _watch(season_id: int, *, silence: timedelta | None, now: datetime) -> None:
    """Extend a season's deadlines by the outage since its last tick, and record this tick.

    `silence` is the time since a web process was last ready, None if unknown.
    """
    within = timedelta(seconds=settings.GATEWAY_RETURN_WITHIN_S)
    with transaction.atomic():
        season = Season.objects.select_for_update().get(pk=season_id)
        lost = lost_time(season.watched_at, now=now)
        unserved = unserved_time(season.watched_at, silence=silence, within=within, now=now)
        if lost:
            _extend(season, max(lost, unserved), opens_from=now + RETURN_TIME, now=now)
        elif unserved and silence is not None:
            opens_from = now + return_time(silence, within=within)
            _extend(season, unserved, opens_from=opens_from, now=now)
        season.watched_at = latest_tick(season.watched_at, now=now)
        season.save(update_fields=["watched_at"])


def _extend(season: Season, lost: timedelta, *, opens_from: datetime, now: datetime) -> None:
    """Move `closes_at` and `score_by` of the season's open rounds by `lost`.

    Of rounds that are being scored, only `score_by` is moved. Scheduled rounds are moved so that
    they open at `opens_from` at the earliest. Rounds of all three phases are announced again.
    """
    rounds = season.rounds.select_for_update(of=("self",)).filter(phase__in=_UNFINISHED)
    for judge_round in rounds:
        if judge_round.phase == Phase.SCHEDULED:
            opens_at = max(judge_round.opens_at, opens_from)
            later = season_deadlines(season, opens_at=opens_at)
        else:
            later = judge_round.deadlines.extend(lost)
        if judge_round.phase == Phase.SCORING:
            later = replace(later, closes_at=judge_round.closes_at)
        judge_round.deadlines = later
        judge_round.save(update_fields=["opens_at", "closes_at", "score_by"])
        announce_round(judge_round, now=now)
