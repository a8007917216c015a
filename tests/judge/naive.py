"""The leaderboard from scratch, slowly: what the kept one has to equal after whatever happened."""

from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import combinations

from scipy.stats import binomtest

from judge.models import Answer, Round, Score, Season, Standing
from judge.ring import RING
from judge.stats import effective_n, macro_interval
from swarm_tasks.marks import Cells, add_cells, mark
from swarm_web.nodes.models import Node

ALPHA = 0.05


@dataclass(frozen=True)
class Row:
    """All that a standing says; floats are rounded, because sums in another order differ."""

    model: str
    arm: str
    remark: str
    rank: tuple[int | None, int | None]
    score: float
    interval: tuple[float, float]
    correct: int
    n: int
    rounds: int
    cells: Cells


def kept_board(season: Season, window: str) -> dict[str, Row]:
    """Return the standings that are stored."""
    standings = Standing.objects.filter(season=season, window=window).select_related("node")
    return {
        kept.node.name: Row(
            model=kept.model,
            arm=kept.arm,
            remark=kept.remark,
            rank=(kept.rank_low, kept.rank_high),
            score=round(kept.score, 9),
            interval=(round(kept.interval_low, 9), round(kept.interval_high, 9)),
            correct=kept.correct,
            n=kept.n,
            rounds=kept.rounds,
            cells={dataset: (cell[0], cell[1]) for dataset, cell in kept.cells.items()},
        )
        for kept in standings
    }


def naive_board(season: Season, window: str, *, now: datetime) -> dict[str, Row]:
    """Return the standings that the scores and answers of the window's rounds come to."""
    rounds = _rounds_in(season, window, now=now)
    cells: defaultdict[int, Cells] = defaultdict(dict)
    played: Counter[int] = Counter()
    for score in _scored(rounds):
        cells[score.node_id] = add_cells(cells[score.node_id], _cells_of(score))
        played[score.node_id] += 1
    nodes = Node.objects.in_bulk(list(cells))
    newest = _newest_scores(season)
    remarks = {
        pk: _remark(season, window, nodes[pk], arm=newest[pk].arm, cells=cells[pk]) for pk in cells
    }
    ranks = _rank(season, rounds, {pk: cells[pk] for pk, remark in remarks.items() if not remark})
    return {
        nodes[pk].name: _row(
            own, newest[pk], remark=remarks[pk], rank=ranks.get(pk), rounds=played[pk]
        )
        for pk, own in cells.items()
    }


def scores_from_answers(judge_round: Round) -> dict[int, Cells]:
    """Return the cells of every scored seat of a round, marked anew from its answers."""
    sheets = _outcomes(judge_round)
    return {node: mark(sheet).cells for node, sheet in sheets.items() if mark(sheet).n}


def _rounds_in(season: Season, window: str, *, now: datetime) -> list[Round]:
    closed = sorted(season.rounds.filter(phase="closed"), key=lambda r: r.number)
    match window:
        case "round":
            return closed[-1:]
        case "recent":
            return closed[-season.recent_rounds :]
        case "24h" | "7d":
            span = timedelta(days=1 if window == "24h" else 7)
            return [r for r in closed if r.closed_at is not None and r.closed_at > now - span]
    return closed


def _scored(rounds: list[Round]) -> list[Score]:
    return list(Score.objects.filter(round__in=rounds, status="scored"))


def _newest_scores(season: Season) -> dict[int, Score]:
    """Return each node's score in the newest of its rounds."""
    closed = list(season.rounds.filter(phase="closed"))
    numbers = {r.pk: r.number for r in closed}
    return {
        score.node_id: score
        for score in sorted(_scored(closed), key=lambda score: numbers[score.round_id])
    }


def _cells_of(score: Score) -> Cells:
    return {dataset: (cell[0], cell[1]) for dataset, cell in score.cells.items()}


def _remark(season: Season, window: str, node: Node, *, arm: str, cells: Cells) -> str:
    minimum = season.minimum_questions
    if window == "round":
        minimum = min(minimum, season.questions_per_round)
    if node.quarantined:
        return "quarantined"
    if arm == "base":
        return "base"
    return "too_few" if sum(n for _, n in cells.values()) < minimum else ""


def _row(
    cells: Cells, newest: Score, *, remark: str, rank: tuple[int, int] | None, rounds: int
) -> Row:
    score = _macro(cells)
    low, high = macro_interval(score, effective_n(cells))
    return Row(
        model=newest.model,
        arm=newest.arm,
        remark=remark,
        rank=rank or (None, None),
        score=round(score, 9),
        interval=(round(low, 9), round(high, 9)),
        correct=sum(correct for correct, _ in cells.values()),
        n=sum(n for _, n in cells.values()),
        rounds=rounds,
        cells=cells,
    )


def _macro(cells: Cells) -> float:
    return sum(correct / n for correct, n in cells.values()) / len(cells)


# ---- ranks, pair by pair


def _rank(
    season: Season, rounds: list[Round], cells: dict[int, Cells]
) -> dict[int, tuple[int, int]]:
    """Return best and worst ranks: McNemar's exact test of all pairs, with Holm's correction."""
    sheets = _sheets(season, rounds)
    better: set[tuple[int, int]] = set()
    tests = []
    for one, other in combinations(sorted(cells), 2):
        shared = [
            (sheets[one][q], sheets[other][q]) for q in sheets[one].keys() & sheets[other].keys()
        ]
        won, lost = shared.count((True, False)), shared.count((False, True))
        p_value = binomtest(won, won + lost).pvalue if won + lost else 1.0
        tests.append((p_value, *((one, other) if won > lost else (other, one))))
    for i, (p_value, winner, loser) in enumerate(sorted(tests)):
        if p_value > ALPHA / (len(tests) - i):
            break
        if _macro(cells[winner]) > _macro(cells[loser]):
            better.add((winner, loser))
    return {
        node: (
            1 + sum(loser == node for _, loser in better),
            len(cells) - sum(winner == node for winner, _ in better),
        )
        for node in cells
    }


def _sheets(season: Season, rounds: list[Round]) -> dict[int, dict[int, bool]]:
    """Return by node, by the question's place in the season, whether it was solved.

    Only the season's last RING questions that were counted are compared.
    """
    placed = {
        r.pk: (r.stream_at, r.questions.count())
        for r in season.rounds.exclude(stream_at=None)
        if r.stream_at is not None
    }
    end = max((start + count for start, count in placed.values()), default=0)
    sheets: defaultdict[int, dict[int, bool]] = defaultdict(dict)
    for judge_round in rounds:
        start, _ = placed[judge_round.pk]
        for node, sheet in _outcomes(judge_round).items():
            for place, (_, outcome) in enumerate(sheet, start=start):
                if outcome is not None and place >= end - RING:
                    sheets[node][place] = outcome
    return sheets


def _outcomes(judge_round: Round) -> dict[int, list[tuple[str, bool | None]]]:
    """Return by node that was offered the questions: (dataset, outcome) of each in order.

    What was not answered is wrong; what was answered and not graded is left out, None.
    """
    questions = list(judge_round.questions.order_by("position"))
    answers = {
        (answer.node_id, answer.question_id): answer.solved
        for answer in Answer.objects.filter(question__round=judge_round)
    }
    seats = judge_round.seats.exclude(offered_at=None)
    return {
        node: [
            (question.dataset, answers.get((node, question.pk), False)) for question in questions
        ]
        for node in seats.values_list("node_id", flat=True)
    }
