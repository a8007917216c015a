"""The coin that assigns arms: permuted blocks of random size, so that the arms stay even."""

import secrets
from math import floor

from django.db import connection, transaction
from django.db.models import F

from judge.models import CoinBlock, Enrolment, Season
from swarm_web.nodes.models import Node

# Drawn for each block, so that nobody knows which of its places is the last.
SIZES = (4, 6, 8)
_COIN = Season.Assignment.COIN
_random = secrets.SystemRandom()


def flip_coin(node: Node, season: Season) -> str:
    """Return the arm that the coin drew for a node, and keep it on record.

    It is drawn once a season: a node that was `base` for a while comes back to its place.
    """
    enrolled = Enrolment.objects.filter(season=season, node=node).select_related("block")
    kept = enrolled.first()
    if kept is not None and kept.assignment == _COIN:
        return kept.arm
    with transaction.atomic():
        _lock(season)
        kept = enrolled.first()
        if kept is not None and kept.assignment == _COIN:
            return kept.arm
        if kept is not None and kept.block is not None and kept.place is not None:
            block, place = kept.block, kept.place
        else:
            block, place = _take_place(node, season)
        arm: str = block.arms[place]
        drawn = {"arm": arm, "assignment": _COIN, "block": block, "place": place}
        Enrolment.objects.update_or_create(season=season, node=node, defaults=drawn)
    return arm


def _lock(season: Season) -> None:
    """Let one transaction at a time draw arms in a season."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext('judge.coin'), %s)", [season.pk])


def _take_place(node: Node, season: Season) -> tuple[CoinBlock, int]:
    """Take the next place in a block of the node's model; a new block if none has one.

    Two nodes of one owner never share a block: the arm of the one would help to guess the other's.
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
    arms = draw_arms(_random.choice(SIZES), isolated_share=season.isolated_share)
    return season.coin_blocks.create(model=model, arms=arms, size=len(arms))


def draw_arms(size: int, *, isolated_share: float) -> list[str]:
    """Return the arms on the places of a new block, of which about `isolated_share` is isolated.

    Where that is no whole number of places, chance decides between the two next to it: each place
    is isolated with exactly that chance.
    """
    isolated = floor(size * isolated_share + _random.random())
    arms = [Node.Arm.ISOLATED.value] * isolated + [Node.Arm.SWARM.value] * (size - isolated)
    _random.shuffle(arms)
    return arms
