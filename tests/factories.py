"""Real rows and messages for server tests, created in one call and without the verifier."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from itertools import count, cycle, groupby, islice
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
from django.utils import timezone

from judge.engine import Phase
from judge.models import Answer, Question, Round, Score, Season, Seat
from judge.selectors.seasons import task_choices
from judge.services.scores import store_summary
from judge.services.seasons import start_season
from judge.services.standings import refresh_standings
from swarm_protocol.messages import Completion, Hello, Rollout, TaskSpec
from swarm_protocol.version import CLIENT_VERSION, PROTOCOL_VERSION
from swarm_record.stats import effective_n, macro_interval
from swarm_record.stream import pack
from swarm_tasks.allowlist import GENERATOR
from swarm_tasks.asked import NOTHING_ASKED
from swarm_tasks.cells import summarize_outcomes
from swarm_tasks.quiz import QuizRules, commit_quiz
from swarm_tasks.starter import STARTER_TASKS
from swarm_web.nodes.models import Node
from swarm_web.nodes.services import create_node
from swarm_web.relay.models import ArchivedRollout, Exchange, Learned, TrainingPoint

_numbers = count(1)


def make_node(
    name: str | None = None,
    *,
    arm: str = Node.Arm.SWARM,
    model: str = "tiny",
    last_seen: datetime | None = None,
) -> tuple[Node, str]:
    """Create a node and return it with its token; a `last_seen` of now makes it connected."""
    node, token = create_node(name=name, arm=arm)
    node.model, node.parameters, node.last_seen = model, 300_000, last_seen
    node.save()
    return node, token


def make_season(name: str | None = None, **fields: Any) -> Season:
    """Create and start a season on the starter mix; nodes may join rounds that are open."""
    fields.setdefault("tasks", msgspec.to_builtins(list(STARTER_TASKS)))
    fields.setdefault("late_joiners", Season.LateJoiners.JOIN)
    season = Season.objects.create(name=name or f"Season {next(_numbers)}", **fields)
    start_season(season, now=timezone.now())
    return season


def make_round(
    season: Season,
    *,
    phase: Phase = Phase.OPEN,
    questions: int = 2,
    opens_at: datetime | None = None,
    open_s: float = 60,
    datasets: Sequence[str] = ("chain_sum",),
) -> Round:
    """Create a round in any phase, with sums as its questions and a commitment to rules."""
    opens_at = opens_at or timezone.now()
    closes_at = opens_at + timedelta(seconds=open_s)
    judge_round = Round(
        number=next(_numbers),
        season=season,
        phase=phase,
        opens_at=opens_at,
        closes_at=closes_at,
        score_by=closes_at + timedelta(seconds=60),
        closed_at=closes_at if phase == Round.Phase.CLOSED else None,
    )
    rules = QuizRules(
        round=judge_round.number,
        season=season.name,
        seed=season.seed,
        generator=season.generator,
        tasks=task_choices(season.tasks),
        questions=questions,
        answers=season.answer_rules,
        asked=NOTHING_ASKED,
    )
    judge_round.rules = msgspec.to_builtins(rules)
    judge_round.commitment = commit_quiz(rules, secret=bytes(judge_round.secret))
    judge_round.save()
    _add_questions(judge_round, upto=questions, datasets=datasets)
    return judge_round


def _add_questions(
    judge_round: Round, *, upto: int, datasets: Sequence[str] = ("chain_sum",)
) -> None:
    """Add questions until the round has `upto`, with its datasets in turn."""
    asked = judge_round.questions.count()
    Question.objects.bulk_create(
        Question(
            round=judge_round,
            position=position,
            dataset=dataset,
            spec=msgspec.to_builtins(make_spec(judge_round.season, index=2**30 + 2**29 + position)),
            prompt=f"What is 1 + {position}?",
        )
        for position, dataset in enumerate(islice(cycle(datasets), upto), start=1)
        if position > asked
    )


def make_score(judge_round: Round, node: Node, *, correct: int, n: int = 16) -> Score:
    """Score a node in a round: of the first `n` questions it solved the first `correct`.

    Missing questions are added; those beyond `n` are not part of the score.
    """
    (score,) = make_scores(judge_round, {node: correct}, n=n)
    return score


def make_scores(judge_round: Round, correct: Mapping[Node, int], *, n: int = 16) -> list[Score]:
    """Score many nodes in a round like `make_score`, with few queries."""
    _add_questions(judge_round, upto=n)
    datasets = list(judge_round.questions.order_by("position").values_list("dataset", flat=True))
    scores = Score.objects.bulk_create(
        _score(judge_round, node, datasets, correct=solved, n=n) for node, solved in correct.items()
    )
    _set_deviations(judge_round)
    store_summary(judge_round, list(judge_round.scores.all()))
    return scores


def _score(
    judge_round: Round, node: Node, datasets: Sequence[str], *, correct: int, n: int
) -> Score:
    outcomes = [at < correct if at < n else None for at in range(len(datasets))]
    summary = summarize_outcomes(zip(datasets, outcomes, strict=True))
    assert summary.score is not None
    low, high = macro_interval(summary.score, effective_n(summary.cells))
    return Score(
        round=judge_round,
        node=node,
        model=node.model,
        arm=node.arm,
        status=Score.Status.SCORED,
        correct=summary.correct,
        n=summary.n,
        cells=summary.cells,
        answered=pack(np.array([outcome is not None for outcome in outcomes])),
        solved=pack(np.array([bool(outcome) for outcome in outcomes])),
        score=summary.score,
        interval_low=low,
        interval_high=high,
    )


def _set_deviations(judge_round: Round) -> None:
    """Compare the scores of each model with their mean, as the judge does."""
    trained = judge_round.scores.filter(status=Score.Status.SCORED).exclude(arm=Node.Arm.BASE)
    scores = sorted(trained, key=attrgetter("model"))
    for _, same_model in groupby(scores, key=attrgetter("model")):
        group = list(same_model)
        mean = sum(other.score or 0.0 for other in group) / len(group)
        for other in group:
            other.deviation = (other.score or 0.0) - mean
    Score.objects.bulk_update(scores, ["deviation"])


def publish(season: Season) -> None:
    """Refresh the standings; all scores of a round must exist before."""
    refresh_standings(season, now=timezone.now())


def make_seat(judge_round: Round, node: Node) -> Seat:
    """Give a node a seat with the round's questions."""
    return Seat.objects.create(round=judge_round, node=node, offered_at=judge_round.opens_at)


def make_answer(question: Question, node: Node, *, solved: bool, text: str = "42") -> Answer:
    """Store an answer that is already graded."""
    answer = write_answer(question, node, solved=solved, text=text)
    answer.save()
    return answer


def write_answer(question: Question, node: Node, *, solved: bool, text: str = "42") -> Answer:
    """Return a graded answer that is not stored yet."""
    return Answer(
        question=question,
        node=node,
        text=text,
        finish_reason="stop",
        received_at=question.round.opens_at,
        score=float(solved),
        solved=solved,
        verdict="right" if solved else "wrong",
    )


def make_spec(season: Season, *, index: int = 1) -> TaskSpec:
    """Return a task of the season's first dataset; small indices are training tasks."""
    task = task_choices(season.tasks)[0]
    return TaskSpec(
        dataset=task.dataset,
        config=task.config,
        seed=season.seed,
        index=index,
        generator=GENERATOR,
    )


def make_rollout(season: Season, *, rollout_id: str | None = None, index: int = 1) -> Rollout:
    """Return a rollout of two completions."""
    return Rollout(
        id=rollout_id or f"r{next(_numbers)}",
        task=make_spec(season, index=index),
        completions=[
            Completion(text="<answer>2</answer>", finish_reason="stop"),
            Completion(text="<answer>3</answer>", finish_reason="length"),
        ],
        model="tiny",
        step=1,
        tokenizer="chars",
    )


def make_hello(*, arm: Any = "swarm", client: str = CLIENT_VERSION) -> Hello:
    """Return a valid hello."""
    return Hello(
        id="hello",
        protocol=PROTOCOL_VERSION,
        client=client,
        model="tiny",
        tokenizer="chars",
        arm=arm,
        parameters=300_000,
    )


def make_archived_rollout(
    season: Season,
    author: Node,
    *,
    published_at: datetime | None = None,
    dataset: str = "chain_sum",
    solved: int | None = 1,
    learners: Sequence[Node] = (),
    question: str = "What is 1 + 1?",
) -> ArchivedRollout:
    """Archive a rollout of two completions, of which `solved` are right; None leaves it unchecked.

    `learners` trained on it.
    """
    published_at = published_at or timezone.now()
    checked = solved is not None
    right = [None if solved is None else place < solved for place in range(2)]
    rollout = ArchivedRollout.objects.create(
        season=season,
        author=author,
        rollout=f"a{next(_numbers)}",
        dataset=dataset,
        spec=msgspec.to_builtins(make_spec(season)),
        model=author.model,
        step=1,
        completions=[
            {
                "text": f"I think so.\n<answer>{2 if is_right else 3}</answer>",
                "finish_reason": "stop",
                "score": None if is_right is None else float(is_right),
                "solved": is_right,
                "verdict": None if is_right is None else "right" if is_right else "wrong",
            }
            for is_right in right
        ],
        question=question if checked else "",
        published_at=published_at,
        checked_at=published_at if checked else None,
        solved=solved,
        total=2,
        learned_by=len(learners),
    )
    Learned.objects.bulk_create(
        Learned(rollout=rollout, node=node, at=published_at) for node in learners
    )
    return rollout


def make_exchange(
    season: Season, giver: Node, taker: Node, *, used: int, hour: datetime | None = None
) -> Exchange:
    """Let `taker` have trained on `used` rollouts of `giver` in an hour, by default this one."""
    hour = (hour or timezone.now()).replace(minute=0, second=0, microsecond=0)
    return Exchange.objects.create(season=season, hour=hour, giver=giver, taker=taker, used=used)


def make_training_point(
    node: Node, season: Season, *, step: int, at: datetime | None = None, reward: float = 0.5
) -> TrainingPoint:
    """Store a report of a node's training at a step."""
    return TrainingPoint.objects.create(
        node=node,
        season=season,
        at=at or timezone.now(),
        step=step,
        training_reward=reward,
        informative_share=0.5,
        reflection={"recheck": 0.2, "hesitation": 0.1, "exploration": 0.0},
    )
