"""A slow leaderboard computed from scratch, to compare with the stored one."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np

from judge.models import Answer, Question, Round, Score, Season, Seat, Standing
from judge.services.patience import PUT_OFF
from swarm_record.ranking import ResultMatrix
from swarm_record.stats import effective_n, macro_interval
from swarm_record.stream import QUESTIONS
from swarm_tasks.marks import Cells, add_cells, mark
from swarm_web.nodes.models import Node
from tests.judge.naive_ranks import rank_pair_by_pair

# By node: the dataset and the outcome of each question of a round, in order.
Sheets = dict[int, list[tuple[str, bool | None]]]


@dataclass(frozen=True)
class Row:
    """A standing's values; floats are rounded, because the order of summation affects them."""

    model: str
    arm: str
    remark: str
    rank: tuple[int | None, int | None]
    score: float
    interval: tuple[float, float]
    correct: int
    n: int
    rounds: int
    missed: int
    cells: Cells


Board = dict[str, Row]


def stored_boards(season: Season) -> dict[str, Board]:
    """Return the stored standings, by window and node."""
    boards: defaultdict[str, Board] = defaultdict(dict)
    for standing in Standing.objects.filter(season=season).select_related("node"):
        boards[standing.window][standing.node.name] = Row(
            model=standing.model,
            arm=standing.arm,
            remark=standing.remark,
            rank=(standing.rank_low, standing.rank_high),
            score=round(standing.score, 9),
            interval=(round(standing.interval_low, 9), round(standing.interval_high, 9)),
            correct=standing.correct,
            n=standing.n,
            rounds=standing.rounds,
            missed=standing.missed,
            cells={dataset: (cell[0], cell[1]) for dataset, cell in standing.cells.items()},
        )
    return dict(boards)


def naive_boards(season: Season, *, now: datetime) -> dict[str, Board]:
    """Return the standings computed from the season's scores and answers."""
    data = SeasonData(season)
    boards = {
        window: data.build_board(window, now=now)
        for window in ("season", "round", "recent", "24h", "7d")
    }
    return {window: board for window, board in boards.items() if board}


class SeasonData:
    """All rows of a season."""

    def __init__(self, season: Season) -> None:
        self.season = season
        self.rounds = list(Round.objects.filter(season=season).order_by("number"))
        self.closed = [r for r in self.rounds if r.phase == "closed"]
        self.nodes = Node.objects.in_bulk()
        self.scores = list(Score.objects.filter(round__season=season))
        self.seats = list(Seat.objects.filter(round__season=season))
        self.answers = list(Answer.objects.filter(question__round__season=season))
        self.questions: defaultdict[int, list[Question]] = defaultdict(list)
        for question in Question.objects.filter(round__season=season).order_by("position"):
            self.questions[question.round_id].append(question)
        self.sheets = {judge_round.pk: self._mark(judge_round) for judge_round in self.rounds}

    def _mark(self, judge_round: Round) -> Sheets:
        """Return the outcome of each question for each node that was offered the questions.

        Unanswered questions are wrong. A question with an ungraded answer is None for all nodes,
        unless the answer was postponed; then it is wrong.
        """
        questions = self.questions[judge_round.pk]
        asked = {question.pk for question in questions}
        answers = [answer for answer in self.answers if answer.question_id in asked]
        solved = {(answer.node_id, answer.question_id) for answer in answers if answer.solved}
        ungraded = {a.question_id for a in answers if a.score is None and a.verdict != PUT_OFF}
        return {
            seat.node_id: [
                (q.dataset, None if q.pk in ungraded else (seat.node_id, q.pk) in solved)
                for q in questions
            ]
            for seat in self.seats
            if seat.round_id == judge_round.pk and seat.offered_at is not None
        }

    def _missing(self, judge_round: Round) -> set[int]:
        """Return the nodes that were invited to a round and did not request its questions."""
        return {
            seat.node_id
            for seat in self.seats
            if seat.round_id == judge_round.pk and seat.offered_at is None and not seat.came_late
        }

    def _declining(self, judge_round: Round) -> set[int]:
        """Return the missing nodes whose owner saw the questions."""
        owners = {self.nodes[node].owner_id for node in self.sheets[judge_round.pk]} - {None}
        return {n for n in self._missing(judge_round) if self.nodes[n].owner_id in owners}

    def marked_cells(self, judge_round: Round) -> dict[int, Cells]:
        """Return the cells of every node of a round with a question that counts."""
        marks = {node: mark(sheet) for node, sheet in self.sheets[judge_round.pk].items()}
        return {node: own.cells for node, own in marks.items() if own.n}

    def scored_cells(self, judge_round: Round) -> dict[int, Cells]:
        """Return the same cells from the stored scores."""
        return {score.node_id: _cells_of(score) for score in self._scored([judge_round])}

    def build_board(self, window: str, *, now: datetime) -> Board:
        """Return a window's standings."""
        rounds = self._rounds_in(window, now=now)
        cells: defaultdict[int, Cells] = defaultdict(dict)
        played: Counter[int] = Counter()
        for score in self._scored(rounds):
            cells[score.node_id] = add_cells(cells[score.node_id], _cells_of(score))
            played[score.node_id] += 1
        newest = self._newest_scores()
        missed = Counter(pk for judge_round in rounds for pk in self._missing(judge_round))
        remarks = {
            pk: self._remark(window, newest[pk], own, played[pk], missed[pk])
            for pk, own in cells.items()
        }
        ranked = {pk: cells[pk] for pk, remark in remarks.items() if not remark}
        ranks = self._rank(ranked) if window == "season" else {}
        return {
            self.nodes[pk].name: _row(
                own,
                newest[pk],
                remark=remarks[pk],
                rank=ranks.get(pk),
                attended=(played[pk], missed[pk]),
            )
            for pk, own in cells.items()
        }

    def _rounds_in(self, window: str, *, now: datetime) -> list[Round]:
        match window:
            case "round":
                return self.closed[-1:]
            case "recent":
                return self.closed[-self.season.recent_rounds :]
            case "24h" | "7d":
                since = now - timedelta(days=1 if window == "24h" else 7)
                return [r for r in self.closed if r.closed_at is not None and r.closed_at > since]
        return self.closed

    def _scored(self, rounds: Iterable[Round]) -> list[Score]:
        keys = {judge_round.pk for judge_round in rounds}
        return [s for s in self.scores if s.round_id in keys and s.status == "scored"]

    def _newest_scores(self) -> dict[int, Score]:
        """Return each node's score in the newest of its rounds."""
        return {s.node_id: s for judge_round in self.closed for s in self._scored([judge_round])}

    def _remark(self, window: str, newest: Score, cells: Cells, played: int, missed: int) -> str:
        minimum = self.season.minimum_questions
        if window == "round":
            minimum = min(minimum, self.season.questions_per_round)
        if self.nodes[newest.node_id].quarantined:
            return "quarantined"
        if newest.arm == "base":
            return "base"
        if sum(n for _, n in cells.values()) < minimum:
            return "too_few"
        least = self.season.minimum_attendance / 100 * (played + missed)
        return "often_absent" if window == "season" and played < least else ""

    # ---- ranks, pair by pair

    def _rank(self, cells: dict[int, Cells]) -> dict[int, tuple[int, int]]:
        """Return best and worst ranks over the season, computed from their definition."""
        nodes = sorted(cells)
        if not nodes:
            return {}
        placed = sorted(self.closed, key=_place)
        columns: list[list[float]] = []
        weights: list[float] = []
        rounds: list[int] = []
        for number, judge_round in enumerate(placed):
            for weight, values in self._columns(judge_round, nodes):
                columns.append(values)
                weights.append(weight)
                rounds.append(number)
        matrix = ResultMatrix(
            values=np.array(columns, dtype=np.float32).reshape(-1, len(nodes)).T,
            weights=np.array(weights, dtype=np.float32),
            rounds=np.array(rounds, dtype=np.int64),
            questions=sum(_place(placed[number]) < QUESTIONS for number in rounds),
        )
        scores = np.array([_macro(cells[node]) for node in nodes])
        return dict(zip(nodes, rank_pair_by_pair(matrix, scores), strict=True))

    def _columns(self, judge_round: Round, nodes: list[int]) -> list[tuple[float, list[float]]]:
        """Return the weight of each column of a round, and each node's value in it."""
        sheets = self.sheets[judge_round.pk]
        questions = self.questions[judge_round.pk]
        asked = Counter(question.dataset for question in questions)
        if _place(judge_round) >= QUESTIONS:
            cells = self.marked_cells(judge_round)
            complete = {node: own for node, own in cells.items() if own.keys() == asked.keys()}
            scores = {n: _macro(own) for n, own in complete.items()}
            scores |= dict.fromkeys(self._declining(judge_round), 0)
            return [(1, [scores.get(n, np.nan) for n in nodes])]
        nothing: list[tuple[str, bool | None]] = [(q.dataset, False) for q in questions]
        sheets = sheets | dict.fromkeys(self._declining(judge_round), nothing)
        return [
            (weight, [self._worth(sheets.get(node), at, weight) for node in nodes])
            for at, question in enumerate(questions)
            for weight in [1 / (len(asked) * asked[question.dataset])]
        ]

    def _worth(self, sheet: list[tuple[str, bool | None]] | None, at: int, weight: float) -> float:
        outcome = None if sheet is None else sheet[at][1]
        return np.nan if outcome is None else weight * outcome


def _place(judge_round: Round) -> int:
    assert judge_round.stream_at is not None
    return judge_round.stream_at


def _cells_of(score: Score) -> Cells:
    return {dataset: (cell[0], cell[1]) for dataset, cell in score.cells.items()}


def _row(
    cells: Cells,
    newest: Score,
    *,
    remark: str,
    rank: tuple[int, int] | None,
    attended: tuple[int, int],
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
        rounds=attended[0],
        missed=attended[1],
        cells=cells,
    )


def _macro(cells: Cells) -> float:
    return sum(correct / n for correct, n in cells.values()) / len(cells)
