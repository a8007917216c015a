"""The order of a leaderboard's rows."""

from swarm_record.board_rows import StandingRow, sort_rows
from swarm_record.ledgers import NodeLedger, WindowTally


def make_line(
    node_id: int, remark: str = "", *, rank: tuple[int, int] | None = None, score: float = 0.5
) -> StandingRow:
    ledger = NodeLedger(node_id, 0, "tiny", "swarm")
    tally = WindowTally(rounds=1)
    return StandingRow(ledger, tally, remark, rank, score, (score, score), correct=0, n=1)


def listed(*lines: StandingRow) -> list[int]:
    return [line.ledger.node_id for line in sort_rows(lines)]


def test_ranked_nodes_come_first_and_quarantined_ones_last() -> None:
    lines = [
        make_line(1, "quarantined", score=1),
        make_line(2, "base", score=1),
        make_line(3, "too_few", score=1),
        make_line(4, rank=(1, 1), score=0.1),
    ]
    assert listed(*lines) == [4, 3, 2, 1]


def test_best_ranks_take_precedence_over_scores() -> None:
    first, second = make_line(1, rank=(1, 3), score=0.6), make_line(2, rank=(2, 3), score=0.7)
    assert listed(second, first) == [1, 2]


def test_nodes_with_the_same_best_rank_are_ordered_by_score() -> None:
    narrow, wide = make_line(1, rank=(1, 2), score=0.6), make_line(2, rank=(1, 5), score=0.7)
    assert listed(narrow, wide) == [2, 1]


def test_ties_are_ordered_by_score_and_then_by_id() -> None:
    low, high = make_line(1, rank=(1, 3), score=0.4), make_line(3, rank=(1, 3), score=0.5)
    assert listed(low, make_line(2, rank=(1, 3), score=0.4), high) == [3, 1, 2]
