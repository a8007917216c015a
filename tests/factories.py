"""Rows and messages for server tests: real ones, made in one line, without the verifier."""

from datetime import datetime, timedelta
from itertools import count
from typing import Any

import msgspec
from django.utils import timezone

from judge.models import Answer, Question, Round, Score, Season, Seat
from judge.selectors import task_choices
from judge.services.seasons import start_season
from judge.stats import wilson_interval
from swarm_protocol.messages import Completion, Hello, Rollout, TaskSpec
from swarm_protocol.version import CLIENT_VERSION, PROTOCOL_VERSION
from swarm_tasks.allowlist import GENERATOR
from swarm_tasks.starter import STARTER_TASKS
from swarm_web.nodes.models import Node
from swarm_web.nodes.services import create_node

_numbers = count(1)


def make_node(
    name: str | None = None,
    *,
    arm: str = Node.Arm.SWARM,
    model: str = "tiny",
    last_seen: datetime | None = None,
) -> tuple[Node, str]:
    """Make a node and return it with its token; `last_seen` of now makes it a connected one."""
    node, token = create_node(name=name, arm=arm)
    node.model, node.parameters, node.last_seen = model, 300_000, last_seen
    node.save()
    return node, token


def make_season(name: str | None = None, **fields: Any) -> Season:
    """Make a season on the starter mix and start it."""
    fields.setdefault("tasks", msgspec.to_builtins(list(STARTER_TASKS)))
    season = Season.objects.create(name=name or f"Season {next(_numbers)}", **fields)
    start_season(season, now=timezone.now())
    return season


def make_round(
    season: Season,
    *,
    phase: Round.Phase = Round.Phase.OPEN,
    questions: int = 2,
    opens_at: datetime | None = None,
    open_s: float = 60,
) -> Round:
    """Make a round in any phase, with sums as its questions."""
    opens_at = opens_at or timezone.now()
    closes_at = opens_at + timedelta(seconds=open_s)
    judge_round = Round.objects.create(
        number=next(_numbers),
        season=season,
        phase=phase,
        opens_at=opens_at,
        closes_at=closes_at,
        score_by=closes_at + timedelta(seconds=60),
        closed_at=closes_at if phase == Round.Phase.CLOSED else None,
    )
    Question.objects.bulk_create(
        Question(
            round=judge_round,
            position=position,
            dataset="chain_sum",
            spec=msgspec.to_builtins(make_spec(season, index=2**30 + 2**29 + position)),
            prompt=f"What is 1 + {position}?",
        )
        for position in range(1, questions + 1)
    )
    return judge_round


def make_score(judge_round: Round, node: Node, *, correct: int, n: int = 16) -> Score:
    """Score a node in a round."""
    low, high = wilson_interval(correct, n)
    return Score.objects.create(
        round=judge_round,
        node=node,
        model=node.model,
        arm=node.arm,
        status=Score.Status.SCORED,
        correct=correct,
        n=n,
        score=correct / n,
        interval_low=low,
        interval_high=high,
    )


def make_seat(judge_round: Round, node: Node) -> Seat:
    """Offer a node the questions of a round."""
    return Seat.objects.create(round=judge_round, node=node, offered_at=judge_round.opens_at)


def make_answer(question: Question, node: Node, *, solved: bool, text: str = "42") -> Answer:
    """Answer a question, already graded."""
    return Answer.objects.create(
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
    """Return a hello that is accepted."""
    return Hello(
        id="hello",
        protocol=PROTOCOL_VERSION,
        client=client,
        model="tiny",
        tokenizer="chars",
        arm=arm,
        parameters=300_000,
    )
