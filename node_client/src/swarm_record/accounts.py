"""A season's books in memory: what rounds add to and take from its nodes' ledgers; pure.

`judge.services.standings` reads ledgers into a `Books`, books the rounds that enter or leave each
window, and writes back what changed. The cost of booking a round is the number of its scores.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from swarm_record.ranking import Record
from swarm_record.stream import QUESTIONS, Bits, Singles, weigh_questions
from swarm_tasks.marks import Cells, add_cells, macro_score, subtract_cells

SEASON_WINDOW = "season"
# Reasons of a result (Score.Reason): the node was invited and did not ask for the questions.
NOT_OFFERED, DECLINED = "not_offered", "declined"
MISSED = (NOT_OFFERED, DECLINED)


@dataclass
class Tally:
    """What counts for a node in one window: cells by dataset, from `rounds` rounds.

    `missed` is the number of rounds to which it was invited and in which it took no part.
    """

    cells: Cells = field(default_factory=dict)
    rounds: int = 0
    missed: int = 0


@dataclass
class Account:
    """One node's ledger; its part of the stream is in row `row` of the books."""

    node_id: int
    row: int
    model: str
    arm: str
    tallies: dict[str, Tally] = field(default_factory=dict)
    deviations: float = 0.0
    deviation_rounds: int = 0


@dataclass(frozen=True)
class Entry:
    """A node's result in one round, as far as the books need it; bits in the round's order.

    A round that the node missed has one of MISSED as its `reason`, and no cells.
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
        """Whether the node was invited and took no part."""
        return self.reason in MISSED

    @property
    def is_declined(self) -> bool:
        """Whether its owner knew the questions by then.

        An owner that could leave out the rounds that suit it least would be ranked above its
        equals. So ranks count such a round as if the node had solved nothing.
        """
        return self.reason == DECLINED


class Books:
    """All ledgers of a season, with the stream (`swarm_record.stream`) a row for each node.

    `answered` and `solved` [rows, QUESTIONS] are of single questions, `scores` [rows, rounds] of
    the rounds after them, NaN where a node took no part.
    """

    def __init__(
        self, accounts: Iterable[Account], *, answered: Bits, solved: Bits, scores: Singles
    ) -> None:
        self.accounts = {account.node_id: account for account in accounts}
        self.answered, self.solved, self.scores = answered, solved, scores
        self.touched: set[int] = set()

    def open_accounts(self, entries: Iterable[Entry]) -> None:
        """Make room for nodes that have no ledger yet."""
        new = [entry for entry in entries if entry.node_id not in self.accounts]
        if not new:
            return
        for row, entry in enumerate(new, start=len(self.answered)):
            self.accounts[entry.node_id] = Account(entry.node_id, row, entry.model, entry.arm)
        empty = np.zeros((len(new), QUESTIONS), dtype=bool)
        self.answered = np.concatenate([self.answered, empty])
        self.solved = np.concatenate([self.solved, empty])
        absent = np.full((len(new), self.scores.shape[1]), np.nan, dtype=np.float32)
        self.scores = np.concatenate([self.scores, absent])

    def write_round(self, entries: Sequence[Entry], *, start: int, datasets: Sequence[str]) -> None:
        """Write a round at its place in the stream; `datasets` has its questions' ones.

        What was there is cleared: an earlier version of the round's scores.
        """
        if start >= QUESTIONS:
            self._write_score(entries, column=start - QUESTIONS, datasets=len(set(datasets)))
        else:
            at = slice(start, start + len(datasets))
            self._touch(np.any(self.answered[:, at], axis=1))
            self.answered[:, at] = self.solved[:, at] = False
            for entry in entries:
                row = self.accounts[entry.node_id].row
                self.answered[row, at] = entry.is_declined or entry.answered
                self.solved[row, at] = entry.solved
        self.touched |= {entry.node_id for entry in entries}

    def _write_score(self, entries: Iterable[Entry], *, column: int, datasets: int) -> None:
        self._touch(~np.isnan(self.scores[:, column]))
        self.scores[:, column] = np.nan
        for entry in entries:
            # A score without one of the datasets does not compare with one that has them all.
            score = macro_score(entry.cells) if len(entry.cells) == datasets else None
            score = 0.0 if entry.is_declined else score
            row = self.accounts[entry.node_id].row
            self.scores[row, column] = np.nan if score is None else score

    def _touch(self, stale: Bits) -> None:
        self.touched |= {a.node_id for a in self.accounts.values() if stale[a.row]}

    def add(self, window: str, entries: Iterable[Entry]) -> None:
        """Count a round in a window."""
        for entry in entries:
            account = self.accounts[entry.node_id]
            tally = account.tallies.setdefault(window, Tally())
            tally.cells = add_cells(tally.cells, entry.cells)
            tally.missed += entry.is_missed
            tally.rounds += not entry.is_missed
            if window == SEASON_WINDOW and entry.deviation is not None:
                account.deviations += entry.deviation
                account.deviation_rounds += 1
            self.touched.add(entry.node_id)

    def subtract(self, window: str, entries: Iterable[Entry]) -> None:
        """Count a round in a window no more."""
        for entry in entries:
            account = self.accounts[entry.node_id]
            tally = account.tallies[window]
            tally.cells = subtract_cells(tally.cells, entry.cells)
            tally.missed -= entry.is_missed
            tally.rounds -= not entry.is_missed
            if not tally.rounds and not tally.missed:
                del account.tallies[window]
            if window == SEASON_WINDOW and entry.deviation is not None:
                account.deviations -= entry.deviation
                account.deviation_rounds -= 1
            self.touched.add(entry.node_id)

    def rename(self, node_id: int, *, model: str, arm: str) -> None:
        """Note what a node was in the newest of its rounds."""
        account = self.accounts[node_id]
        account.model, account.arm = model, arm
        self.touched.add(node_id)

    def in_window(self, window: str) -> list[Account]:
        """Return the accounts of nodes that were scored in a window, by node."""
        held = (
            account
            for account in self.accounts.values()
            if window in account.tallies and account.tallies[window].rounds
        )
        return sorted(held, key=lambda account: account.node_id)

    def rows(self, accounts: Iterable[Account]) -> npt.NDArray[np.int64]:
        """Return where in the matrices these accounts stand."""
        return np.array([account.row for account in accounts], dtype=np.int64)

    def read_record(
        self, rows: npt.NDArray[np.int64], rounds: Sequence[tuple[int, Sequence[str]]]
    ) -> Record:
        """Return what nodes, by row, did in some rounds, given in the order of the stream.

        Each round is its place in the stream and, where it has a column for each question, the
        questions' datasets.
        """
        single = [weigh_questions(datasets) for start, datasets in rounds if start < QUESTIONS]
        weights = np.concatenate([*single, np.empty(0, np.float32)])
        columns = [start + np.arange(len(w)) for (start, _), w in zip(rounds, single, strict=False)]
        at = np.concatenate([*columns, np.empty(0, np.int64)])
        later = np.array([start - QUESTIONS for start, _ in rounds[len(single) :]], np.int64)
        questions = np.where(
            self.answered[np.ix_(rows, at)], self.solved[np.ix_(rows, at)] * weights, np.nan
        )
        lengths = [len(each) for each in single] + [1] * len(later)
        return Record(
            values=np.hstack([questions, self.scores[np.ix_(rows, later)]]).astype(np.float32),
            weights=np.concatenate([weights, np.ones(len(later), np.float32)]),
            rounds=np.repeat(np.arange(len(rounds)), lengths),
            questions=len(weights),
        )
