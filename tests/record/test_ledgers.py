"""The totals of nodes in the windows of the leaderboard."""

import numpy as np
import pytest

from swarm_record.ledgers import NOT_OFFERED, RoundEntry, SeasonLedgers
from swarm_record.stream import QUESTIONS


def empty_ledgers() -> SeasonLedgers:
    empty = np.zeros((0, QUESTIONS), dtype=bool)
    scores = np.zeros((0, 0), dtype=np.float32)
    return SeasonLedgers([], answered=empty, solved=empty.copy(), scores=scores)


def missed_round(node_id: int) -> RoundEntry:
    none = np.zeros(0, dtype=bool)
    return RoundEntry(node_id, "tiny", "swarm", {}, none, none, deviation=None, reason=NOT_OFFERED)


def test_round_that_was_not_added_cannot_be_subtracted() -> None:
    ledgers, entry = empty_ledgers(), missed_round(7)
    ledgers.add_nodes([entry])
    with pytest.raises(KeyError):
        ledgers.subtract("24h", [entry])


def test_subtracting_what_was_added_leaves_no_tally() -> None:
    ledgers, entry = empty_ledgers(), missed_round(7)
    ledgers.add_nodes([entry])
    ledgers.add("24h", [entry])
    assert ledgers.by_node[7].tallies["24h"].missed == 1
    ledgers.subtract("24h", [entry])
    assert ledgers.by_node[7].tallies == {}
