"""Tells nodes and browsers that a round has changed."""

from datetime import datetime

from judge.models import Round
from judge.selectors.rounds import current_round, describe_round
from judge.services.record import read_chain_head
from swarm_protocol.messages import RoundState
from swarm_web.core import bus


def announce_round(judge_round: Round, *, now: datetime) -> None:
    """Tell nodes and browsers that a round has changed.

    Nodes receive the current round of `judge_round`'s season (`current_round`). If the season has
    no current round, they receive `judge_round`. Browsers receive a doorbell, which says only that
    something has changed (`swarm_web.core.bus`). Both messages are sent after the surrounding
    transaction has committed.
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
