"""Tells nodes and browsers that a round has changed."""

from datetime import datetime

from judge.models import Round
from judge.selectors.rounds import current_round, describe_round
from judge.services.record import read_chain_head
from swarm_protocol.messages import RoundState
from swarm_web.core import bus


def announce_round(judge_round: Round, *, now: datetime) -> None:
    """Send the season's current round to nodes, and a doorbell to browsers.

    Both are sent after the surrounding transaction has committed. The season is that of
    `judge_round`. Its current round is the result of `current_round`, or `judge_round` if no round
    of the season is scheduled, open or being scored. A doorbell (`swarm_web.core.bus`) says only
    that something has changed.
    """
    shown = current_round(judge_round.season) or judge_round
    state = RoundState(
        reply_to=None,
        round=describe_round(shown),
        now=now.isoformat(),
        chain=read_chain_head(now=now),
    )
    bus.ring_nodes(state)
    bus.ring(bus.VIEWERS)
