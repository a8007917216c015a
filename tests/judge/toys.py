"""A judge for tests: cheap questions, answers that state their own verdict, and a clock.

`Site.play` runs a complete round through the real services. Letters define a node's answers: `r` is
correct, `w` wrong, `s` slow to grade, and `-` none.
"""

import copy
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Self

from django.contrib.auth.models import User
from django.utils import timezone

from judge.models import Question, Round, Season, Standing
from judge.services.answers import Receipt, Submission, store_submissions, take_seat
from judge.services.grading import grade_batch
from judge.services.rounds import advance_rounds
from judge.services.scheduling import schedule_round
from judge.services.seasons import start_season
from judge.services.standings import refresh_standings
from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_protocol.messages import AnswerText, Config, TaskSpec
from swarm_tasks.allowlist import GENERATOR
from swarm_tasks.answers import AnswerRules
from swarm_tasks.batches import Batch
from swarm_tasks.keyspace import Part
from swarm_tasks.verdicts import Attempt, Verdict
from swarm_tasks.verifier import DEADLINE_S, DrawnTask, Verifier
from swarm_web.nodes.models import Node
from swarm_web.nodes.presence import touch
from swarm_web.nodes.services import create_node

# Three questions of the first and one of the second.
TASKS = [
    {"dataset": "chain_sum", "config": {}, "weight": 3.0},
    {"dataset": "gcd", "config": {}, "weight": 1.0},
]
QUESTIONS = 4
OPEN_S, SCORING_S = 60, 30

_TEXTS = {
    "r": "<answer>right</answer>",
    "w": "<answer>wrong</answer>",
    "s": "<answer>slow</answer>",
}


def submit_answers(
    node: Node, *, number: int, answers: Sequence[AnswerText], now: datetime
) -> Receipt:
    """Submit one node's answers. Raises RefusedError if the judge refuses the submission."""
    (outcome,) = store_submissions([Submission(node.pk, number, answers, now)])
    if isinstance(outcome, RefusedError):
        raise outcome
    return outcome


class Clock:
    """The server's clock, advanced by hand."""

    def __init__(self) -> None:
        self.now: datetime = timezone.now()

    def advance(self, seconds: float) -> datetime:
        self.now += timedelta(seconds=seconds)
        return self.now


class ToyVerifier(Verifier):
    """Draws questions from counters, and gives the verdict that an answer states.

    Questions of the datasets in `broken` cannot be generated again. `seen` counts how often each
    text was graded; `on_grading` is called first. Unless `in_time`, no answer is started.
    """

    def __init__(self) -> None:
        super().__init__()
        self.broken: set[str] = set()
        self.seen: Counter[str] = Counter()
        self.on_grading: Callable[[], object] = lambda: None
        self.in_time = True

    def draw(
        self, *, key: bytes, part: Part, dataset: str, config: Config, seed: int, counter: int
    ) -> DrawnTask:
        spec = TaskSpec(dataset, config, seed, counter, GENERATOR)
        return DrawnTask(spec, f"{dataset} {counter} of {key.hex()[:8]}?")

    def score_many(
        self, batch: Batch, *, rules: AnswerRules = AnswerRules.EXACT
    ) -> list[list[Verdict]]:
        self.on_grading()
        for spec, _ in batch:
            if spec.dataset in self.broken:
                raise RefusedError(ErrorCode.VERIFIER_FAILED, f"{spec.dataset} is broken")
        for _, texts in batch:
            self.seen.update(texts)
        return [[_judge(text) for text in texts] for _, texts in batch]

    def score_until(
        self,
        batch: Batch,
        *,
        until: float,
        text_s: float = DEADLINE_S,
        rules: AnswerRules = AnswerRules.EXACT,
    ) -> list[list[Attempt]]:
        """Grade answers immediately, but postpone slow ones.

        With the full deadline, a slow answer times out.
        """
        groups = self.score_many(batch, rules=rules)
        if not self.in_time:
            return [[Attempt(None, 0.0)] * len(texts) for _, texts in batch]
        return [
            [_try(text, verdict, text_s) for text, verdict in zip(texts, verdicts, strict=True)]
            for (_, texts), verdicts in zip(batch, groups, strict=True)
        ]


def _try(text: str, verdict: Verdict, text_s: float) -> Attempt:
    if "slow" not in text:
        return Attempt(verdict, 0.0)
    return Attempt(None if text_s < DEADLINE_S else Verdict(0.0, "timeout"), text_s)


def _judge(text: str) -> Verdict:
    return Verdict(1.0, "right") if "right" in text else Verdict(0.0, "wrong")


def make_toy_season(name: str = "Toys") -> Season:
    """Create a draft season of toy questions."""
    return Season.objects.create(
        name=name,
        tasks=TASKS,
        questions_per_round=QUESTIONS,
        open_seconds=OPEN_S,
        scoring_seconds=SCORING_S,
        cadence_seconds=120,
        minimum_questions=1,
    )


def connect_node(
    name: str, clock: Clock, *, model: str = "tiny", arm: str = Node.Arm.SWARM
) -> Node:
    """Create a connected node."""
    node, _ = create_node(name=name, arm=arm)
    Node.objects.filter(pk=node.pk).update(model=model)
    touch([node], now=clock.now)
    node.refresh_from_db()
    return node


class Site:
    """A season of toy questions with its nodes, run through the judge's services."""

    def __init__(self, season: Season, clock: Clock, verifier: Verifier | None = None) -> None:
        self.season = season
        self.clock = clock
        self.toy = ToyVerifier()
        self.verifier = verifier or self.toy
        self.nodes: dict[str, Node] = {}

    @classmethod
    def start(cls, clock: Clock) -> Self:
        """Start a season of toy questions, four per round, without nodes."""
        season = make_toy_season()
        start_season(season, now=clock.now)
        season.refresh_from_db()
        return cls(season, clock)

    def copy(self) -> Self:
        """Return a copy, for a test that changes the season, nodes or clock."""
        season, clock, nodes = copy.deepcopy((self.season, self.clock, self.nodes))
        other = type(self)(season, clock)
        other.nodes = nodes
        return other

    # ---- nodes

    def join(self, *names: str, model: str = "tiny", arm: str = Node.Arm.SWARM) -> list[Node]:
        """Connect nodes."""
        nodes = [connect_node(name, self.clock, model=model, arm=arm) for name in names]
        self.nodes |= {node.name: node for node in nodes}
        return nodes

    def sit(self, judge_round: Round, *names: str) -> None:
        """Let nodes request the questions."""
        for name in names:
            take_seat(self.nodes[name], number=judge_round.number, now=self.clock.now)

    def write(self, judge_round: Round, name: str, letters: str) -> list[AnswerText]:
        """Return the answers that the letters define, in the order of the questions."""
        by = f"{name} {judge_round.number}"
        return answers_from(letters, questions_of(judge_round), by=by)

    def submit(self, judge_round: Round, name: str, letters: str) -> Receipt:
        """Submit the answers that the letters define."""
        answers = self.write(judge_round, name, letters)
        return submit_answers(
            self.nodes[name], number=judge_round.number, answers=answers, now=self.clock.now
        )

    def own(self, owner: str, *names: str) -> None:
        """Give nodes one owner."""
        user, _ = User.objects.get_or_create(username=owner)
        for name in names:
            self.nodes[name].owner = user
            self.nodes[name].save(update_fields=["owner"])

    # ---- rounds

    def schedule(self, *, in_seconds: float = 0) -> Round:
        return schedule_round(
            self.season,
            opens_at=self.clock.now + timedelta(seconds=in_seconds),
            now=self.clock.now,
            verifier=self.verifier,
        )

    def open(self, *present: str) -> Round:
        """Open a round while these nodes are connected, so that they are invited."""
        for name in present:
            touch([self.nodes[name]], now=self.clock.now)
        judge_round = self.schedule()
        assert judge_round in self.advance()
        judge_round.refresh_from_db()
        return judge_round

    def grade(self) -> int:
        """Grade waiting answers, and return how many were graded."""
        return grade_batch(verifier=self.verifier)

    def advance(self, seconds: float = 0) -> list[Round]:
        """Let time pass, then tick once."""
        return advance_rounds(now=self.clock.advance(seconds))

    def end(self, judge_round: Round) -> Round:
        """Let a round's answering time pass, grade it and close it."""
        self.advance((judge_round.closes_at - self.clock.now).total_seconds())
        self.grade()
        self.advance()
        judge_round.refresh_from_db()
        return judge_round

    def play(self, **letters: str) -> Round:
        """Play a complete round, update the leaderboard, and return the closed round."""
        judge_round = self.hold(**letters)
        self.refresh()
        return judge_round

    def answer(self, *idle: str, **letters: str) -> Round:
        """Open a round, and let nodes request its questions and answer; `idle` nodes do neither."""
        judge_round = self.open(*letters, *idle)
        self.sit(judge_round, *letters)
        store_submissions(
            [
                Submission(
                    self.nodes[name].pk,
                    judge_round.number,
                    self.write(judge_round, name, sheet),
                    self.clock.now,
                )
                for name, sheet in letters.items()
                if sheet.strip("-")
            ]
        )
        return judge_round

    def hold(self, *idle: str, **letters: str) -> Round:
        """Play a complete round and return it closed, without updating the leaderboard."""
        return self.end(self.answer(*idle, **letters))

    def refresh(self, seconds: float = 0) -> bool:
        """Let time pass, then update the leaderboard."""
        return refresh_standings(self.season, now=self.clock.advance(seconds))

    def board(self, window: str = "season") -> dict[str, Standing]:
        """Return a window's standings by node."""
        rows = Standing.objects.filter(season=self.season, window=window).select_related("node")
        return {row.node.name: row for row in rows}


def questions_of(judge_round: Round) -> list[Question]:
    """Return a round's questions in order."""
    return list(judge_round.questions.order_by("position"))


def answers_from(letters: str, questions: Sequence[Question], *, by: str = "") -> list[AnswerText]:
    """Return the answers that letters define; each text is unique."""
    return [
        AnswerText(
            question=str(question.pk),
            text=f"{by} {question.position} {_TEXTS[letter]}",
            finish_reason="stop",
        )
        for letter, question in zip(letters, questions, strict=False)
        if letter != "-"
    ]
