"""Ledgers: each node's running totals in a season. Rounds can be added and subtracted; no I/O.

A ledger has totals for each window of the leaderboard, such as the last 24 hours.
`judge.services.standings` loads the ledgers, adds or subtracts the rounds that enter or leave a
window, and saves what changed. Adding a round costs time proportional to its number of scores.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from swarm_record.ranking import ResultMatrix
from swarm_record.stream import QUESTIONS, Bits, Singles, weigh_questions
from swarm_tasks.cells import Cells, add_cells, macro_score, subtract_cells

SEASON_WINDOW = "season"
# The values of Score.Reason for a node that was invited and did not request the questions.
NOT_OFFERED, DECLINED = "not_offered", "declined"
MISSED = (NOT_OFFERED, DECLINED)


@dataclass
class WindowTally:
    """A node's totals in one window.

    `rounds` counts the rounds in which the node was scored. `cells` has, for each dataset, the
    number of right answers and the number of questions. `missed` counts the rounds to which the
    node was invited but whose questions it did not request.
    """

    cells: Cells = field(default_factory=dict)
    rounds: int = 0
    missed: int = 0


@dataclass
class NodeLedger:
    """One node's ledger; `row` is its row in the matrices of `SeasonLedgers`.

    `tallies` has the node's totals by window. A deviation is the node's score in a round minus the
    mean score of all trained nodes with the same model in that round. `deviations` is the sum of
    the node's deviations in the season, and `deviation_rounds` the number of rounds with one.
    """

    node_id: int
    row: int
    model: str
    arm: str
    tallies: dict[str, WindowTally] = field(default_factory=dict)
    deviations: float = 0.0
    deviation_rounds: int = 0


@dataclass(frozen=True)
class RoundEntry:
    """A node's result in one round, as ledgers need it.

    `answered` marks the questions that count for the node, unanswered ones included. `solved` marks
    those that it solved. Both are in the order of the round's questions. `deviation` (`NodeLedger`)
    is None if the node has none or if it is unknown. `reason` is a value of Score.Reason. If the
    node missed the round, `reason` is one of MISSED, and `cells` is empty.
    """

    node_id: int
    model: str
    arm: str
    cells: Cells
    answered: Bits
    solved: Bits
    deviation: float | None
    reason: str = ""

    @property
    def is_missed(self) -> bool:
        """Whether the node was invited but did not request the questions."""
        return self.reason in MISSED

    @property
    def is_declined(self) -> bool:
        """Whether the node was invited, but left the questions to another node of its owner.

        The other node requested the questions, and this node did not. Ranks count such a round as
        if this node had solved nothing. Otherwise an owner could read the questions with one node,
        and let a second node skip the rounds in which it would do worst. The second node would then
        rank above equally good nodes.
        """
        return self.reason == DECLINED


class SeasonLedgers:
    """All ledgers of a season, and the season's stream (`swarm_record.stream`) as three matrices.

    The matrices have a row per node. For rounds that are stored as single questions, `answered` and
    `solved` [rows, QUESTIONS] say which questions count for the node and which it solved. `scores`
    [rows, later rounds] has the node's score in each later round, NaN where the round does not
    count for the node. `touched` has the ids of the nodes whose ledgers have changed.
    """

    def __init__(
        self, nodes: Iterable[NodeLedger], *, answered: Bits, solved: Bits, scores: Singles
    ) -> None:
        self.by_node = {ledger.node_id: ledger for ledger in nodes}
        self.answered, self.solved, self.scores = answered, solved, scores
        self.touched: set[int] = set()

    def add_nodes(self, entries: Iterable[RoundEntry]) -> None:
        """Add an empty ledger for each node in `entries` that has none yet."""
        new = [entry for entry in entries if entry.node_id not in self.by_node]
        if not new:
            return
        for row, entry in enumerate(new, start=len(self.answered)):
            self.by_node[entry.node_id] = NodeLedger(entry.node_id, row, entry.model, entry.arm)
        empty = np.zeros((len(new), QUESTIONS), dtype=bool)
        self.answered = np.concatenate([self.answered, empty])
        self.solved = np.concatenate([self.solved, empty])
        absent = np.full((len(new), self.scores.shape[1]), np.nan, dtype=np.float32)
        self.scores = np.concatenate([self.scores, absent])

    def write_round(
        self, entries: Sequence[RoundEntry], *, start: int, datasets: Sequence[str]
    ) -> None:
        """Write a round's results into the matrices, in place of earlier results of the same round.

        `start` is the number of the round's first column in the season's stream
        (`swarm_record.stream`). `datasets` has the dataset of each of the round's questions, in
        order. Each entry's node must have a ledger (`add_nodes`).
        """
        if start >= QUESTIONS:
            self._write_score(entries, column=start - QUESTIONS, datasets=len(set(datasets)))
        else:
            at = slice(start, start + len(datasets))
            self._touch(np.any(self.answered[:, at], axis=1))
            self.answered[:, at] = self.solved[:, at] = False
            for entry in entries:
                row = self.by_node[entry.node_id].row
                self.answered[row, at] = entry.is_declined or entry.answered
                self.solved[row, at] = entry.solved
        self.touched |= {entry.node_id for entry in entries}

    def _write_score(self, entries: Iterable[RoundEntry], *, column: int, datasets: int) -> None:
        self._touch(~np.isnan(self.scores[:, column]))
        self.scores[:, column] = np.nan
        for entry in entries:
            # A score that lacks one of the datasets is not comparable with a complete one.
            score = macro_score(entry.cells) if len(entry.cells) == datasets else None
            score = 0.0 if entry.is_declined else score
            row = self.by_node[entry.node_id].row
            self.scores[row, column] = np.nan if score is None else score

    def _touch(self, stale: Bits) -> None:
        self.touched |= {each.node_id for each in self.by_node.values() if stale[each.row]}

    def add(self, window: str, entries: Iterable[RoundEntry]) -> None:
        """Add a round's results to the nodes' tallies in a window.

        Raises KeyError for a node that has no ledger (`add_nodes`).
        """
        self._count(window, entries, sign=1)

    def subtract(self, window: str, entries: Iterable[RoundEntry]) -> None:
        """Subtract a round's results from the nodes' tallies in a window.

        Only results that `add` added earlier can be subtracted. Raises KeyError for a node without
        a tally in the window. Raises ValueError if a number of questions or right answers to
        subtract is larger than the tally's.
        """
        self._count(window, entries, sign=-1)

    def _count(self, window: str, entries: Iterable[RoundEntry], *, sign: int) -> None:
        combine = add_cells if sign > 0 else subtract_cells
        for entry in entries:
            ledger = self.by_node[entry.node_id]
            if sign > 0:
                ledger.tallies.setdefault(window, WindowTally())
            tally = ledger.tallies[window]
            tally.cells = combine(tally.cells, entry.cells)
            if entry.is_missed:
                tally.missed += sign
            else:
                tally.rounds += sign
            if not tally.rounds and not tally.missed:
                del ledger.tallies[window]
            if window == SEASON_WINDOW and entry.deviation is not None:
                ledger.deviations += sign * entry.deviation
                ledger.deviation_rounds += sign
            self.touched.add(entry.node_id)

    def relabel(self, node_id: int, *, model: str, arm: str) -> None:
        """Set the model and arm in a node's ledger; both come from the node's newest round."""
        ledger = self.by_node[node_id]
        ledger.model, ledger.arm = model, arm
        self.touched.add(node_id)

    def in_window(self, window: str) -> list[NodeLedger]:
        """Return the ledgers of nodes with a scored round in the window, sorted by node id."""
        held = (
            ledger
            for ledger in self.by_node.values()
            if window in ledger.tallies and ledger.tallies[window].rounds
        )
        return sorted(held, key=lambda ledger: ledger.node_id)

    def build_matrix(
        self, nodes: Iterable[NodeLedger], rounds: Sequence[tuple[int, Sequence[str]]]
    ) -> ResultMatrix:
        """Return the results of `nodes` in `rounds`, with a row per node in the given order.

        `rounds` has a pair for each round, in the order of the stream (`swarm_record.stream`): the
        number of the round's first column in the stream, and the datasets of its questions. The
        datasets determine the weights of the questions. They are not used if the round is stored as
        one column.
        """
        rows = np.array([ledger.row for ledger in nodes], dtype=np.int64)
        single = [weigh_questions(datasets) for start, datasets in rounds if start < QUESTIONS]
        weights = np.concatenate([*single, np.empty(0, np.float32)])
        columns = [start + np.arange(len(w)) for (start, _), w in zip(rounds, single, strict=False)]
        at = np.concatenate([*columns, np.empty(0, np.int64)])
        later = np.array([start - QUESTIONS for start, _ in rounds[len(single) :]], np.int64)
        questions = np.where(
            self.answered[np.ix_(rows, at)], self.solved[np.ix_(rows, at)] * weights, np.nan
        )
        lengths = [len(each) for each in single] + [1] * len(later)
        return ResultMatrix(
            values=np.hstack([questions, self.scores[np.ix_(rows, later)]]).astype(np.float32),
            weights=np.concatenate([weights, np.ones(len(later), np.float32)]),
            rounds=np.repeat(np.arange(len(rounds)), lengths),
            questions=len(weights),
        )
