"""Rollouts, exchanges and training points of the demo data, as rows; pure.

The constants ..._COLUMNS name the values of the rows in their order.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from random import Random

import msgspec

from swarm_protocol.messages import TaskChoice, TaskSpec
from swarm_tasks.allowlist import GENERATOR
from swarm_web.seeding.nodes import DemoClock
from swarm_web.seeding.population import Population
from swarm_web.seeding.questions import DemoQuestion, make_question
from swarm_web.seeding.rows import NodeKeys

ROLLOUT_COLUMNS = (
    *("id", "season_id", "author_id", "rollout", "dataset", "spec", "model", "step"),
    *("completions", "question", "published_at", "checked_at", "failure", "solved", "total"),
    "learned_by",
)
LEARNED_COLUMNS = ("rollout_id", "node_id", "at")
EXCHANGE_COLUMNS = ("season_id", "hour", "giver_id", "taker_id", "used")
POINT_COLUMNS = (
    *("node_id", "season_id", "at", "step", "training_reward", "informative_share"),
    "reflection",
)
HOURS = 24
_COMPLETIONS = 8
_MAX_LEARNERS = 9
_POINTS_APART = timedelta(minutes=10)

Row = tuple[object, ...]


@dataclass(frozen=True)
class Traffic:
    """Draws the traffic of one season. `sharers` are the indexes of the nodes that share."""

    season_id: int
    seed: int
    tasks: Sequence[TaskChoice]
    population: Population
    node_keys: NodeKeys
    clock: DemoClock
    sharers: Sequence[int]

    def rollouts(self, keys: Sequence[int], *, random: Random) -> Iterator[tuple[Row, list[Row]]]:
        """Yield a row of ROLLOUT_COLUMNS for each key, oldest first.

        Each comes with the rows of LEARNED_COLUMNS for the nodes that trained on the rollout.
        """
        for index, key in enumerate(keys):
            author = random.choice(self.sharers)
            ago = timedelta(hours=HOURS) * (1 - (index + 1) / len(keys)) + timedelta(seconds=20)
            published_at = self.clock.now - ago
            at = min(published_at + timedelta(minutes=3), self.clock.now)
            learners = {*random.choices(self.sharers, k=random.randrange(_MAX_LEARNERS))}
            learned: list[Row] = [
                (key, self.node_keys.keys[learner], at) for learner in sorted(learners - {author})
            ]
            fields = self._make(author, random=random)
            yield (
                (
                    *(key, self.season_id, self.node_keys.keys[author], f"r{index}", *fields[:2]),
                    *(self.node_keys.models[author], 12 * (index + 1), *fields[2:4]),
                    *(published_at, at, "", *fields[4:], len(learned)),
                ),
                learned,
            )

    def exchanges(self, count: int, *, random: Random) -> Iterator[Row]:
        """Yield at most `count` rows of EXCHANGE_COLUMNS for each of the last HOURS hours.

        Nodes that come first in `sharers` give more often than the others.
        """
        begin = self.clock.now.replace(minute=0, second=0, microsecond=0)
        weights = [1 / (1 + index) ** 0.5 for index in range(len(self.sharers))]
        for ago in range(HOURS):
            givers = random.choices(self.sharers, weights, k=count)
            takers = random.choices(self.sharers, k=count)
            for giver, taker in sorted({*zip(givers, takers, strict=True)}):
                if giver != taker:
                    used = 1 + int(random.expovariate(0.12))
                    hour = begin - timedelta(hours=ago)
                    yield (
                        self.season_id,
                        hour,
                        self.node_keys.keys[giver],
                        self.node_keys.keys[taker],
                        used,
                    )

    def points(self, index: int, count: int, *, random: Random) -> Iterator[Row]:
        """Yield `count` rows of POINT_COLUMNS for the node with this index, oldest first.

        Its rewards rise and level off.
        """
        low = float(self.population.floors[index].mean())
        gain = float(self.population.ceilings[index].mean()) - low
        for at in range(count):
            done = (at + 1) / count
            reward = low + gain * (1 - 0.02**done) + random.gauss(0, 0.03)
            reflection = {
                "recheck": round(0.05 + 0.3 * done * random.random(), 3),
                "hesitation": round(0.2 - 0.12 * done * random.random(), 3),
                "exploration": round(0.04 + 0.1 * random.random(), 3),
            }
            yield (
                *(self.node_keys.keys[index], self.season_id),
                *(self.clock.now - (count - 1 - at) * _POINTS_APART, 12 * (at + 1)),
                *(min(1.0, max(0.0, reward)), round(0.7 - 0.3 * done + random.gauss(0, 0.04), 3)),
                msgspec.json.encode(reflection).decode(),
            )

    def _make(self, author: int, *, random: Random) -> Row:
        """Return dataset, spec, completions, question, number of right completions, and of all."""
        choice = random.choice(self.tasks)
        spec = TaskSpec(
            dataset=choice.dataset,
            config=choice.config,
            seed=self.seed,
            generator=GENERATOR,
            index=random.randrange(2**30),
        )
        asked = make_question(choice.dataset, random=random)
        chance = float(self.population.ceilings[author].mean())
        outcomes = [random.random() < chance for _ in range(_COMPLETIONS)]
        completions = [_complete(asked, right=right, random=random) for right in outcomes]
        return (
            *(choice.dataset, msgspec.json.encode(spec).decode()),
            *(msgspec.json.encode(completions).decode(), asked.prompt),
            *(sum(outcomes), len(outcomes)),
        )


def _complete(asked: DemoQuestion, *, right: bool, random: Random) -> dict[str, object]:
    """Return one completion with our verifier's verdict."""
    return {
        "text": random.choice(asked.right if right else asked.wrong),
        "finish_reason": "stop",
        "score": float(right),
        "solved": right,
        "verdict": "right" if right else "wrong",
    }
