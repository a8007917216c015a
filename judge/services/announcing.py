"""Tells nodes and browsers that a round has changed."""

from datetime import datetime

from judge.models import Round
from judge.selectors.rounds import current_round, describe_round
from judge.services.record import read_chain_head
from swarm_protocol.messages import RoundState
from swarm_web.core import bus


def announce_round(judge_round: Round, *, now: datetime) -> None:
    """Send nodes the current round of `judge_round`'s season, and browsers a doorbell.

    The current round is the result of `current_round`, or `judge_round` if no round of the season
    is scheduled, open or being scored. A doorbell (`swarm_web.core.bus`) says only that something
    has changed. Both are sent after the surrounding transaction has committed.
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
