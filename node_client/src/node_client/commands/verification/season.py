"""Checks a season's rounds and leaderboard against the chain and the rounds' results; no I/O.

The judge computes its leaderboard with the same code (`swarm_record.ledgers`,
`swarm_record.board_rows`). So these checks do not test that code; they show that the leaderboard
follows from the published results alone.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from node_client.commands.verification.chain import Chain, RoundHistory
from node_client.commands.verification.checks import (
    Differences,
    FieldPair,
    RoundCheck,
    conclude,
)
from node_client.commands.verification.listing import BoardRow, ListedRound
from node_client.commands.verification.results import RoundResults, find_mistakes, is_close
from swarm_record.board_rows import Minimum, StandingRow, build_rows
from swarm_record.ledgers import MISSED, SEASON_WINDOW, RoundEntry, SeasonLedgers
from swarm_record.results import ResultLine
from swarm_record.stream import QUESTIONS, Bits, allocate_columns, unpack
from swarm_tasks.cells import summarize_outcomes

TOLERANCE = 1e-6


@dataclass(frozen=True)
class PlayedRound:
    """A round that closed: its entry in the site's list, and its results.

    `results` is None if the round was made void after it had closed.
    """

    listed: ListedRound
    results: RoundResults | None


# ---- the rounds


def check_rounds(
    listed: Sequence[ListedRound], chain: Chain, histories: Mapping[int, RoundHistory]
) -> RoundCheck:
    """Check that the site lists each round of the chain with its season, phase and commitment.

    Round numbers must have no gaps. A round need not be listed if it was withdrawn, or if it was
    lost when the site was restored from a backup. The site's list may have another name for a
    season than the chain. It must then use that name for all rounds of the season. `histories` has
    the chain's records by round number.
    """
    differences, by_number = Differences(), {each.number: each for each in listed}
    last = max([*by_number, *histories], default=0)
    known = range(chain.covered_from, last + 1)
    names = _name_seasons(by_number, histories)
    for number in known:
        where, history = f"round {number}", histories.get(number)
        shown = by_number.get(number)
        if history is None:
            # The chain may have started during an open round.
            if number >= chain.scheduled_from:
                differences.add(where, published="listed" if shown else "missing", ours="a gap")
        elif shown is None:
            if not history.is_gone:
                differences.add(where, published="not listed", ours="in the chain")
        else:
            _compare_round(shown, history, differences, names=names)
    withdrawn = sum(history.withdrawn for history in histories.values())
    void = [history for history in histories.values() if history.void]
    early = sum(history.answered is None for history in void)
    doubts = [
        f"round {number}: the operator read its sealed questions"
        for number, history in sorted(histories.items())
        if history.unsealed
    ]
    return conclude(
        "rounds",
        compared=f"{len(known):,} numbers in a row; {withdrawn:,} withdrawn before they opened,"
        f" {early:,} void before they were answered, {len(void) - early:,} void after",
        differences=differences,
        doubts=doubts,
    )


def _name_seasons(
    listed: Mapping[int, ListedRound], histories: Mapping[int, RoundHistory]
) -> dict[str, str]:
    """Return the site's name of each of the chain's seasons, by the season's name in the chain.

    The two names are equal if the site lists any round of the season under the chain's name.
    Otherwise the season was renamed, which older sites allowed even after the season's start. The
    site's name is then the one under which it lists the most rounds of the season.
    """
    names = defaultdict[str, Counter[str]](Counter)
    for number, shown in listed.items():
        history = histories.get(number)
        if history is not None and history.scheduled is not None:
            names[history.scheduled.season][shown.season] += 1
    return {
        name: name if name in shown else shown.most_common(1)[0][0] for name, shown in names.items()
    }


def _compare_round(
    shown: ListedRound, history: RoundHistory, differences: Differences, *, names: Mapping[str, str]
) -> None:
    closed = history.closed is not None
    phase = "void" if history.void else "closed" if closed else shown.phase
    if shown.phase != phase or (not closed and shown.phase == "closed"):
        differences.add(f"phase of round {shown.number}", published=shown.phase, ours=phase)
    if (scheduled := history.scheduled) is not None:
        fields: list[FieldPair] = [
            ("season", shown.season, names[scheduled.season]),
            ("commitment", shown.commitment, scheduled.commitment),
        ]
        differences.add_unequal(fields, of=f"round {shown.number}")
    for kind in history.twice:
        differences.add(f"round {shown.number}", published=f"{kind} twice", ours="once")


def check_season_results(
    played: Sequence[PlayedRound], histories: Mapping[int, RoundHistory]
) -> RoundCheck:
    """Check the results of each round.

    The Merkle root over a round's results must be the one in the chain. If the chain has no record
    of the round, the root is not checked. The fields of each line of the results must follow from
    the line's bits `answered` and `solved`. Void rounds are skipped. `histories` has the chain's
    records by round number.
    """
    differences, anchored, count = Differences(), 0, 0
    for each in played:
        if each.results is None:
            continue
        number, count = each.listed.number, count + len(each.results.lines)
        fixed = histories[number].results if number in histories else ""
        if number in histories and each.results.root != fixed:
            differences.add(
                f"results of round {number}", published=each.results.root, ours=fixed or "none"
            )
        anchored += number in histories
        for line in each.results.lines:
            counts = _recount(line, each.results.head.datasets)
            of = f"{line.node} in round {number}"
            differences.add_unequal([*find_mistakes(line), *counts], of=of)
    older = len(played) - anchored
    return conclude(
        "results",
        compared=f"{count:,} scores and intervals of {len(played):,} rounds"
        + (f"; {older:,} are older than the chain or void" if older else ""),
        differences=differences,
    )


def _recount(line: ResultLine, datasets: Sequence[str]) -> list[FieldPair]:
    """Return recomputed fields of a line of results, as (name, line's value, our value).

    Our values are computed from the line's bits `answered` and `solved`. `datasets` has the dataset
    of each question of the round, in order.
    """
    answered, solved = _read_bits(line, len(datasets))
    outcomes = [bool(s) if a else None for a, s in zip(answered, solved, strict=True)]
    summary = summarize_outcomes(zip(datasets, outcomes, strict=True))
    return [
        ("cells", line.cells, summary.cells),
        ("n", line.n, summary.n),
        ("correct", line.correct, summary.correct),
        ("status", line.status, "absent" if summary.score is None else "scored"),
    ]


def _read_bits(line: ResultLine, count: int) -> tuple[Bits, Bits]:
    size = (count + 7) // 8
    packed = [
        bytes.fromhex(text).ljust(size, b"\0")[:size] for text in (line.answered, line.solved)
    ]
    answered, solved = unpack(packed, count)
    return answered, solved


# ---- the leaderboard


def compute_board(
    played: Sequence[PlayedRound], *, minimum: Minimum, questions: int, quarantined: set[str]
) -> dict[str, StandingRow]:
    """Return the leaderboard lines of a season by node name, computed from its rounds.

    `minimum` says how much a node must have taken part to be ranked. A void round has no results;
    it is assumed to have had `questions` questions. Nodes in `quarantined` get a line without a
    rank.
    """
    places = _place(played, questions=questions)
    counted = [
        (each.results, places[each.listed.number])
        for each in sorted(played, key=lambda each: each.listed.number)
        if each.results is not None
    ]
    end = max((start for _, start in counted), default=0) + 1
    empty = np.zeros((0, QUESTIONS), dtype=bool)
    later = np.zeros((0, max(0, end - QUESTIONS)), dtype=np.float32)
    ledgers = SeasonLedgers([], answered=empty, solved=empty.copy(), scores=later)
    keys: dict[str, int] = {}
    for results, start in counted:
        _add_round(ledgers, results, start=start, keys=keys)
    names = {key: name for name, key in keys.items()}
    nodes = ledgers.in_window(SEASON_WINDOW)
    rounds = [(start, results.head.datasets) for results, start in counted]
    matrix = ledgers.build_matrix(nodes, sorted(rounds, key=lambda each: each[0]))
    hidden = {key for key, name in names.items() if name in quarantined}
    lines = build_rows(nodes, SEASON_WINDOW, quarantined=hidden, matrix=matrix, minimum=minimum)
    return {names[line.ledger.node_id]: line for line in lines}


def _place(played: Sequence[PlayedRound], *, questions: int) -> dict[int, int]:
    """Return each round's first column in the nodes' ledgers, by round number.

    A ledger has a column for each question or, late in the season, for each round
    (`swarm_record.stream`). Columns are allocated in the order in which the rounds closed. A round
    without results is assumed to have had `questions` questions.
    """
    places, end = {}, 0
    for each in sorted(played, key=lambda each: (each.listed.closed_at or "", each.listed.number)):
        size = len(each.results.head.datasets) if each.results else questions
        places[each.listed.number], end = allocate_columns(end, size)
    return places


def _add_round(
    ledgers: SeasonLedgers, results: RoundResults, *, start: int, keys: dict[str, int]
) -> None:
    entries = [
        RoundEntry(
            keys.setdefault(line.node, len(keys)),
            line.model,
            line.arm,
            line.cells,
            *_read_bits(line, len(results.head.datasets)),
            deviation=None,
            reason=line.reason,
        )
        for line in results.lines
        if (line.status == "scored" and line.cells) or line.reason in MISSED
    ]
    ledgers.add_nodes(entries)
    ledgers.write_round(entries, start=start, datasets=results.head.datasets)
    ledgers.add(SEASON_WINDOW, entries)
    for entry in entries:
        if not entry.is_missed:
            ledgers.relabel(entry.node_id, model=entry.model, arm=entry.arm)


def check_board(shown: Sequence[BoardRow], drawn: Mapping[str, StandingRow]) -> RoundCheck:
    """Compare the published leaderboard lines (`shown`) with the computed ones (`drawn`).

    Quarantined nodes must not be listed.
    """
    differences = Differences()
    expected = {name: line for name, line in drawn.items() if line.remark != "quarantined"}
    for name in sorted(expected.keys() - {row.node for row in shown}):
        differences.add(f"line of {name}", published="not listed", ours="listed")
    for row in shown:
        line = expected.get(row.node)
        if line is None:
            differences.add(f"line of {row.node}", published="listed", ours="not listed")
            continue
        differences.add_unequal(_pair_line(row, line), of=row.node)
    return conclude(
        "leaderboard",
        compared=f"{len(shown):,} lines: scores, intervals, ranks and labels from all rounds",
        differences=differences,
    )


def _pair_line(row: BoardRow, line: StandingRow) -> Iterator[FieldPair]:
    """Yield a leaderboard line's fields as (name, published value, our value).

    The published values are from `row`, ours from `line`. `score` and `interval` are yielded only
    if they differ.
    """
    if not is_close(row.score, line.score, TOLERANCE):
        yield "score", row.score, line.score
    if not all(map(is_close, row.interval, line.interval, (TOLERANCE,) * 2)):
        yield "interval", row.interval, line.interval
    yield from (
        ("rank", row.rank, line.rank),
        ("remark", row.remark, line.remark),
        ("model", row.model, line.ledger.model),
        ("arm", row.arm, line.ledger.arm),
        ("n", row.n, line.n),
        ("rounds", row.rounds, line.tally.rounds),
        ("missed rounds", row.missed, line.tally.missed),
        ("cells", row.cells, line.tally.cells),
    )
