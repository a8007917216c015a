"""A toy model, a small season and a pool in memory, for the trainer's tests."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from node_client.learning.questions.choice import Questions
from node_client.learning.rollouts import TrainingGroup
from node_client.learning.trainer import Trainer
from node_client.model.demo.make_model import Base, build_model
from node_client.model.demo.tokenizer import build_tokenizer
from node_client.model.demo.warmup import WarmUpConfig
from node_client.model.policy import Policy
from node_client.settings.train_config import TrainConfig
from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_protocol.messages import (
    Completion,
    Config,
    ExternalRollout,
    Rollout,
    SeasonInfo,
    TaskChoice,
    TaskSpec,
)
from swarm_tasks.allowlist import GENERATOR
from swarm_tasks.generation_errors import GenerationError, NoQuestionError
from swarm_tasks.keyspace import Part
from swarm_tasks.verifier import DrawnTask, StreamPosition, Verifier

TOY = Base(hidden_size=16, layers=1, heads=2, warm_up=WarmUpConfig(steps=1))
SUMS: Config = {"min_terms": 2, "max_terms": 2, "min_digits": 1, "max_digits": 1}
SEED = 7


def toy_policy(*, seed: int = 0) -> Policy:
    """Return an untrained policy of a few thousand parameters."""
    return Policy(model=build_model(TOY, seed=seed), tokenizer=build_tokenizer(), name="toy")


def writing_policy(*, seed: int = 0) -> Policy:
    """Return a toy policy that writes only lines of ASCII, so that all of its text can be shared.

    In the embedding table, which is also the output table, the first number of each permitted token
    is large, and that of every other token is its negative.
    """
    policy = toy_policy(seed=seed)
    table = policy._model.get_input_embeddings().weight
    assert isinstance(table, Tensor)
    texts = [str(policy._tokenizer.tokenizer.decode([token])) for token in range(len(table))]
    written = [text == "\n" or (len(text) == 1 and " " <= text <= "~") for text in texts]
    for token in policy._tokenizer.ends:
        written[token] = True
    with torch.no_grad():
        table[:, 0] = torch.tensor(written) * 4.0 - 2.0
    return policy


def toy_season(*, local: int = 2, external: int = 2, completions: int = 4) -> SeasonInfo:
    """Return a season of one-digit sums."""
    return SeasonInfo(
        name="sums",
        seed=SEED,
        generator=GENERATOR,
        tasks=[TaskChoice(dataset="chain_sum", config=SUMS, weight=1.0)],
        completions=completions,
        local=local,
        external=external,
        max_new_tokens=8,
        temperature=0.0,
    )


def group_of(*rewards: float, **fields: Any) -> TrainingGroup:
    """Return a group of one-token completions with these rewards, and other parts as given."""
    count = len(rewards)
    parts = {
        "prompt": [1],
        "completions": [[2]] * count,
        "truncated": [False] * count,
        "dataset": "chain_sum",
    }
    return TrainingGroup(rewards=list(rewards), **{**parts, **fields})


def toy_stream(
    verifier: Verifier, *, key: bytes = b"key", season: SeasonInfo | None = None
) -> Questions:
    """Return a node's stream of one-digit sums, or of the tasks of another season."""
    season = season or toy_season()
    return Questions(verifier=verifier, season=season, config=TrainConfig(), key=key)


class BorrowingVerifier(Verifier):
    """A verifier that uses the child of a running one, because starting another takes a second.

    Subclasses decide which requests fail.
    """

    def __init__(self, lender: Verifier) -> None:
        super().__init__()
        self._lock, self._keeper = lender._lock, lender._keeper


class OnceFailingVerifier(BorrowingVerifier):
    """A verifier whose `draw`-th draw, from 1, fails."""

    def __init__(self, lender: Verifier, *, draw: int) -> None:
        super().__init__(lender)
        self._left = draw

    def draw_many(
        self, positions: Sequence[StreamPosition], *, key: bytes, part: Part, seed: int
    ) -> list[DrawnTask]:
        return [self.draw(key=key, part=part, seed=seed, **place._asdict()) for place in positions]

    def draw(
        self, *, key: bytes, part: Part, dataset: str, config: Config, seed: int, counter: int
    ) -> DrawnTask:
        self._left -= 1
        if self._left == 0:
            raise RefusedError(ErrorCode.VERIFIER_FAILED, "Gone.")
        return super().draw(
            key=key, part=part, dataset=dataset, config=config, seed=seed, counter=counter
        )


class FailingVerifier(BorrowingVerifier):
    """A verifier that cannot make one of the questions."""

    def __init__(self, lender: Verifier, failing: TaskSpec) -> None:
        super().__init__(lender)
        self._failing = failing

    def question(self, spec: TaskSpec) -> str:
        if spec == self._failing:
            raise RefusedError(ErrorCode.VERIFIER_FAILED, "Gone.")
        return super().question(spec)

    def questions(self, specs: Sequence[TaskSpec]) -> list[str]:
        if self._failing in specs:
            gone = GenerationError(ErrorCode.VERIFIER_FAILED, "Gone.")
            raise NoQuestionError(specs.index(self._failing), gone)
        return super().questions(specs)


class PoolInMemory:
    """A RolloutExchange that records what is published and offers the given rollouts."""

    def __init__(self, offered: Sequence[ExternalRollout] = ()) -> None:
        self.offered = list(offered)
        self.published: list[Rollout] = []
        self.declared: list[str] = []

    def publish(self, rollouts: Sequence[Rollout], *, informative: Sequence[str]) -> None:
        self.published += rollouts
        self.declared += informative

    def fetch(self, count: int) -> Sequence[ExternalRollout]:
        return self.offered[:count]


def make_trainer(
    verifier: Verifier,
    *,
    policy: Policy | None = None,
    season: SeasonInfo | None = None,
    config: TrainConfig | None = None,
    exchange: PoolInMemory | None = None,
) -> Trainer:
    """Return a trainer of a toy policy in a toy season; arguments replace its parts."""
    return Trainer(
        policy=policy or toy_policy(),
        verifier=verifier,
        season=season or toy_season(),
        config=config or TrainConfig(learning_rate=1e-2),
        exchange=exchange or PoolInMemory(),
        node="here",
        key=b"a node's key",
    )


def external_sum(
    verifier: Verifier,
    texts: Sequence[str],
    *,
    counter: int = 0,
    part: Part = Part.TRAINING,
    config: Config = SUMS,
    node: str = "elsewhere",
) -> ExternalRollout:
    """Return another node's rollout of a sum; `{sum}` in a text is replaced by the right answer."""
    task = verifier.draw(
        key=b"another node's key",
        part=part,
        dataset="chain_sum",
        config=config,
        seed=SEED,
        counter=counter,
    )
    expression = task.question.split(":")[1].strip(" =")
    left, sign, right = expression.split(" ")
    total = int(left) + int(sign + right)
    return ExternalRollout(
        node=node,
        age_s=1.0,
        rollout=Rollout(
            id=f"rollout-{node}-{counter}",
            task=task.spec,
            completions=[
                Completion(text=text.replace("{sum}", str(total)), finish_reason="stop")
                for text in texts
            ],
            model="toy",
            step=0,
            tokenizer="abc",
        ),
    )
