"""Services that start, pause, resume and end seasons, and assign nodes to arms."""

import logging
import secrets
from collections.abc import Sequence
from datetime import datetime
from math import floor

from django.db import connection, transaction
from django.db.models import F

from judge.engine import Phase
from judge.models import CoinBlock, Enrolment, Season
from judge.selectors.seasons import describe_season
from judge.services.record import add_link
from swarm_protocol.errors import RefusedError
from swarm_protocol.messages import SeasonState
from swarm_tasks.allowlist import GENERATOR
from swarm_web.core import bus
from swarm_web.nodes.models import Node

logger = logging.getLogger(__name__)

# Block sizes, drawn at random so that nobody knows which place of a block is the last.
BLOCK_SIZES = (4, 6, 8)
_COIN = Season.Assignment.COIN
_random = secrets.SystemRandom()


def start_season(season: Season, *, now: datetime) -> bool:
    """Start a draft season and end the running one; return True.

    If the season is not a draft, nothing changes and the result is False.
    """
    with transaction.atomic():
        drafts = Season.objects.select_for_update().filter(state=Season.State.DRAFT)
        if not drafts.filter(pk=season.pk).exists():
            return False
        for running in Season.objects.filter(state=Season.State.RUNNING):
            end_season(running, now=now)
        season.state, season.started_at, season.generator = Season.State.RUNNING, now, GENERATOR
        season.save(update_fields=["state", "started_at", "generator"])
        _announce(season)
    return True


def end_season(season: Season, *, now: datetime) -> bool:
    """End a running season and withdraw its scheduled rounds; return whether it was running.

    A round that is open, being opened or being scored goes on to its end.
    """
    with transaction.atomic():
        running = Season.objects.filter(pk=season.pk, state=Season.State.RUNNING)
        changed = running.update(state=Season.State.ENDED, ended_at=now)
        if changed:
            # Locked, so that a round that a tick is opening is left out.
            scheduled = season.rounds.select_for_update().filter(phase=Phase.SCHEDULED)
            numbers = list(scheduled.order_by("number").values_list("number", flat=True))
            season.rounds.filter(number__in=numbers).delete()
            for number in numbers:
                add_link("withdrawn", now=now, round=number)
            _announce(None)
    return bool(changed)


def pause_season(season: Season) -> bool:
    """Pause a season, so that it opens no rounds; return False if it is paused already."""
    return _set_paused(season, to=True)


def resume_season(season: Season) -> bool:
    """End a season's pause; overdue rounds then open. Return False if it is not paused."""
    return _set_paused(season, to=False)


def halt_season(season: Season, refusal: RefusedError) -> bool:
    """Pause a season that has run out of questions; return False if it is paused already.

    Logs `refusal`, and stores its message and remedy as the season's `halt_reason` unless the
    season is paused already. Until the season is resumed, no round opens, and none is scheduled
    automatically.
    """
    logger.error("season %s opens no more rounds: %s", season, refusal)
    reason = f"{refusal.code}: {refusal.message}. {refusal.fix}"
    return _set_paused(season, to=True, reason=reason)


def _set_paused(season: Season, *, to: bool, reason: str = "") -> bool:
    others = Season.objects.filter(pk=season.pk, paused=not to)
    changed = others.update(paused=to, halt_reason=reason)
    bus.ring(bus.VIEWERS)
    return bool(changed)


def announce_rules(season: Season) -> None:
    """Send the season's stored rules to all connected nodes if it is running.

    The season is read from the database again, because another process may have changed it.
    """
    current = Season.objects.filter(pk=season.pk, state=Season.State.RUNNING).first()
    if current is not None:
        _announce(current)


def _announce(season: Season | None) -> None:
    rules = describe_season(season) if season else None
    bus.ring_nodes(SeasonState(reply_to=None, season=rules))
    bus.ring(bus.VIEWERS)


# ---- arms


def enrol(node: Node, season: Season, *, preferred: str) -> str:
    """Record a node's arm in a season, and who chose it; return the arm.

    The arm is `preferred`, the owner's preference, unless the season assigns arms by coin. In such
    a season only the preference `base` (an untrained model) counts. For any other preference, the
    coin draws the arm, once per season.
    """
    (arm,) = enrol_all(season, [(node, preferred)])
    return arm


def enrol_all(season: Season, preferences: Sequence[tuple[Node, str]]) -> list[str]:
    """Enrol nodes, each with the arm that its owner prefers; return their arms in the same order.

    Nodes whose recorded arm does not change take one query in total.
    """
    nodes = [node.pk for node, _ in preferences]
    known = {row.node_id: row for row in Enrolment.objects.filter(season=season, node__in=nodes)}
    return [
        _known_arm(season, known.get(node.pk), preferred)
        or _record_arm(node, season, preferred=preferred)
        for node, preferred in preferences
    ]


def _known_arm(season: Season, enrolment: Enrolment | None, preferred: str) -> str | None:
    """Return the recorded arm if it is still valid; None if an arm must be drawn or chosen now."""
    if enrolment is None:
        return None
    if _is_drawn(season, preferred):
        return enrolment.arm if enrolment.assignment == _COIN else None
    settled = (enrolment.arm, enrolment.assignment) == (preferred, Season.Assignment.CHOICE)
    return preferred if settled else None


def _record_arm(node: Node, season: Season, *, preferred: str) -> str:
    if _is_drawn(season, preferred):
        return _flip_coin(node, season)
    chosen = {"arm": Node.Arm(preferred), "assignment": Season.Assignment.CHOICE}
    Enrolment.objects.update_or_create(season=season, node=node, defaults=chosen)
    return preferred


def _is_drawn(season: Season, preferred: str) -> bool:
    return season.assignment == _COIN and preferred != Node.Arm.BASE


# ---- the coin: permuted blocks of random size, so that the arms stay balanced


def _flip_coin(node: Node, season: Season) -> str:
    """Record the arm that the coin draws for a node, and return the arm.

    The coin draws only one arm for a node in a season: a node that was `base` for a while gets back
    the arm drawn before.
    """
    with transaction.atomic():
        _lock_coin(season)
        # Read under the lock: another connection of the node may have been faster.
        enrolled = Enrolment.objects.filter(season=season, node=node)
        enrolment = enrolled.select_related("block").first()
        if enrolment is not None and enrolment.assignment == _COIN:
            return enrolment.arm
        if enrolment is not None and enrolment.block is not None and enrolment.place is not None:
            block, place = enrolment.block, enrolment.place
        else:
            block, place = _take_place(node, season)
        arm: str = block.arms[place]
        drawn = {"arm": arm, "assignment": _COIN, "block": block, "place": place}
        Enrolment.objects.update_or_create(season=season, node=node, defaults=drawn)
    return arm


def _lock_coin(season: Season) -> None:
    """Take the lock for drawing arms in a season; it is held until the transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext('judge.coin'), %s)", [season.pk])


def _take_place(node: Node, season: Season) -> tuple[CoinBlock, int]:
    """Take a place in a block of the node's model, and return the block and the place.

    The place is the next one in the oldest suitable block, or the first one in a new block. A block
    is unsuitable if it is full, or if it has another node of the node's present owner: the arms in
    a block are balanced, so the arm of one node would help the owner to guess the arm of the other.
    """
    blocks = season.coin_blocks.filter(model=node.model, taken__lt=F("size"))
    if node.owner_id is not None:
        blocks = blocks.exclude(enrolments__node__owner=node.owner_id)
    block = blocks.order_by("pk").first() or _draw_block(node.model, season)
    place = block.taken
    block.taken += 1
    block.save(update_fields=["taken"])
    return block, place


def _draw_block(model: str, season: Season) -> CoinBlock:
    arms = draw_arms(_random.choice(BLOCK_SIZES), isolated_share=season.isolated_share)
    return season.coin_blocks.create(model=model, arms=arms, size=len(arms))


def draw_arms(size: int, *, isolated_share: float) -> list[str]:
    """Return the shuffled arms of a new block of `size` places.

    `size * isolated_share` of them are isolated. If this is not a whole number, it is rounded up or
    down at random, so that each place is isolated with probability `isolated_share` exactly.
    """
    isolated = floor(size * isolated_share + _random.random())
    arms = [Node.Arm.ISOLATED.value] * isolated + [Node.Arm.SWARM.value] * (size - isolated)
    _random.shuffle(arms)
    return arms
