"""Seasons begin, pause, resume and end, and nodes get their arms in them."""

from collections.abc import Sequence
from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet

from judge.models import Enrolment, Round, Season
from judge.selectors.seasons import describe_season
from judge.services.coin import flip_coin
from judge.services.record import fix_withdrawn
from swarm_protocol.errors import RefusedError
from swarm_protocol.messages import SeasonState
from swarm_tasks.allowlist import GENERATOR
from swarm_web import bus
from swarm_web.nodes.models import Node


def start_season(season: Season, *, now: datetime) -> bool:
    """Start a drafted season, ending the one that runs; tell whether this call did it."""
    with transaction.atomic():
        drafts = Season.objects.select_for_update().filter(state=Season.State.DRAFT)
        if not drafts.filter(pk=season.pk).exists():
            return False
        for running in Season.objects.filter(state=Season.State.RUNNING):
            end_season(running, now=now)
        season.state, season.started_at, season.generator = Season.State.RUNNING, now, GENERATOR
        season.save(update_fields=["state", "started_at", "generator"])
        _ring(season)
    return True


def end_season(season: Season, *, now: datetime) -> bool:
    """End the running season; a round that is open is still finished."""
    with transaction.atomic():
        won = Season.objects.filter(pk=season.pk, state=Season.State.RUNNING).update(
            state=Season.State.ENDED, ended_at=now
        )
        if won:
            _withdraw(season.rounds.filter(phase=Round.Phase.SCHEDULED), now=now)
            _ring(None)
    return bool(won)


def _withdraw(rounds: QuerySet[Round], *, now: datetime) -> None:
    numbers = list(rounds.order_by("number").values_list("number", flat=True))
    rounds.delete()
    fix_withdrawn(numbers, now=now)


def pause_season(season: Season) -> bool:
    """Open no new rounds until the season is resumed."""
    return _set_paused(season, to=True)


def resume_season(season: Season) -> bool:
    """Let a paused season open rounds again; a round that is overdue opens at once."""
    return _set_paused(season, to=False)


def halt_season(season: Season, refusal: RefusedError) -> bool:
    """Pause a season for which no round can be made, and keep the code, the reason and the remedy.

    Resumed, it tries again.
    """
    reason = f"{refusal.code}: {refusal.message}. {refusal.fix}"
    return _set_paused(season, to=True, reason=reason)


def _set_paused(season: Season, *, to: bool, reason: str = "") -> bool:
    others = Season.objects.filter(pk=season.pk, paused=not to)
    won = others.update(paused=to, halt_reason=reason)
    bus.ring(bus.VIEWERS)
    return bool(won)


def _ring(season: Season | None) -> None:
    told = describe_season(season) if season else None
    bus.ring_nodes(SeasonState(reply_to=None, season=told))
    bus.ring(bus.VIEWERS)


# ---- arms


def enrol(node: Node, season: Season, *, wish: str) -> str:
    """Return the node's arm in the season, and keep it on record with who decided.

    That is its owner's wish, or in a season with a coin what the coin said; an untrained `base`
    node is in neither arm, whoever decides.
    """
    if season.assignment == Season.Assignment.COIN and wish != Node.Arm.BASE:
        return flip_coin(node, season)
    kept = Enrolment.objects.filter(season=season, node=node).first()
    chosen = {"arm": Node.Arm(wish), "assignment": Season.Assignment.CHOICE}
    if kept is None or (kept.arm, kept.assignment) != (wish, Season.Assignment.CHOICE):
        Enrolment.objects.update_or_create(season=season, node=node, defaults=chosen)
    return wish


def enrol_all(season: Season, wishes: Sequence[tuple[Node, str]]) -> list[str]:
    """Return the arms of many nodes, each with its owner's wish, as `enrol` does for one.

    Nodes whose arm is on record already take one query together.
    """
    nodes = [node.pk for node, _ in wishes]
    known = {row.node_id: row for row in Enrolment.objects.filter(season=season, node__in=nodes)}
    return [
        _known_arm(season, known.get(node.pk), wish) or enrol(node, season, wish=wish)
        for node, wish in wishes
    ]


def _known_arm(season: Season, kept: Enrolment | None, wish: str) -> str | None:
    """Return the arm on record where it is the one that `enrol` would return."""
    if kept is None:
        return None
    if season.assignment == Season.Assignment.COIN and wish != Node.Arm.BASE:
        return kept.arm if kept.assignment == Season.Assignment.COIN else None
    settled = (kept.arm, kept.assignment) == (wish, Season.Assignment.CHOICE)
    return wish if settled else None
