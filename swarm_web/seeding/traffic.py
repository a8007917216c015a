"""Writes rollouts, exchanges and training points of the demo data, for the latest season."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from random import Random

import msgspec

from judge.models import Season
from judge.selectors.seasons import task_choices
from swarm_protocol.messages import TaskChoice, TaskSpec
from swarm_tasks.allowlist import GENERATOR
from swarm_web.nodes.models import Node
from swarm_web.relay.models import ArchivedRollout, Exchange, Learned, TrainingPoint
from swarm_web.seeding.nodes import BATCH, DemoClock
from swarm_web.seeding.population import Population
from swarm_web.seeding.questions import DemoQuestion, make_question
from swarm_web.seeding.sizes import DemoSize

_HOURS = 24
_COMPLETIONS = 8
_MAX_LEARNERS = 9
_POINTS_APART = timedelta(minutes=10)


class TrafficWriter:
    """Writes one season's rollouts, exchanges and points; `nodes` are in the population's order."""

    def __init__(
        self,
        season: Season,
        population: Population,
        nodes: Sequence[Node],
        *,
        clock: DemoClock,
        random: Random,
    ) -> None:
        self._season, self._population, self._nodes = season, population, nodes
        self._clock, self._random = clock, random
        self._tasks = task_choices(season.tasks)
        # Indexes of the nodes that share.
        self._sharers = [i for i, node in enumerate(nodes) if node.arm == Node.Arm.SWARM]

    def write(self, size: DemoSize) -> None:
        """Write the season's recent rollouts and exchanges, and its nodes' training points."""
        rollouts, learned = [], []
        for number in range(size.archived):
            rollout, learners = self._make_rollout(number, size.archived)
            rollouts.append(rollout)
            learned += learners
        ArchivedRollout.objects.bulk_create(rollouts, batch_size=BATCH)
        Learned.objects.bulk_create(learned, batch_size=BATCH)
        Exchange.objects.bulk_create(self._make_exchanges(size.exchanges), batch_size=BATCH)
        for index, node in enumerate(self._nodes):
            if node.arm != Node.Arm.BASE:
                TrainingPoint.objects.bulk_create(self._make_points(index, size.points))

    def _make_rollout(self, number: int, count: int) -> tuple[ArchivedRollout, list[Learned]]:
        """Return one of `count` rollouts, and records of the nodes that trained on it.

        Number 0 is the oldest. The rollout has verdicts, as if the site's verifier had scored it.
        """
        random, clock = self._random, self._clock
        author = random.choice(self._sharers)
        ago = timedelta(hours=_HOURS) * (1 - (number + 1) / count) + timedelta(seconds=20)
        checked_at = min(clock.now - ago + timedelta(minutes=3), clock.now)
        learners = {*random.choices(self._sharers, k=random.randrange(_MAX_LEARNERS))} - {author}
        task = random.choice(self._tasks)
        spec = self._make_spec(task)
        asked = make_question(task.dataset, random=random)
        chance = float(self._population.ceilings[author].mean())
        outcomes = [random.random() < chance for _ in range(_COMPLETIONS)]
        rollout = ArchivedRollout(
            season=self._season,
            author=self._nodes[author],
            rollout=f"r{number}",
            dataset=task.dataset,
            spec=msgspec.to_builtins(spec),
            model=self._nodes[author].model,
            step=12 * (number + 1),
            completions=[_complete(asked, right=right, random=random) for right in outcomes],
            question=asked.prompt,
            published_at=clock.now - ago,
            checked_at=checked_at,
            solved=sum(outcomes),
            total=len(outcomes),
            learned_by=len(learners),
        )
        nodes = [self._nodes[learner] for learner in sorted(learners)]
        return rollout, [Learned(rollout=rollout, node=node, at=checked_at) for node in nodes]

    def _make_spec(self, task: TaskChoice) -> TaskSpec:
        return TaskSpec(
            dataset=task.dataset,
            config=task.config,
            seed=self._season.seed,
            generator=GENERATOR,
            index=self._random.randrange(2**30),
        )

    def _make_exchanges(self, count: int) -> Iterator[Exchange]:
        """Yield at most `count` exchanges for each of the last _HOURS hours.

        The earlier a node joined, the more often it is the giver.
        """
        begin = self._clock.now.replace(minute=0, second=0, microsecond=0)
        weights = [1 / (1 + place) ** 0.5 for place in range(len(self._sharers))]
        for ago in range(_HOURS):
            givers = self._random.choices(self._sharers, weights, k=count)
            takers = self._random.choices(self._sharers, k=count)
            for giver, taker in sorted({*zip(givers, takers, strict=True)}):
                if giver != taker:
                    yield Exchange(
                        season=self._season,
                        hour=begin - timedelta(hours=ago),
                        giver=self._nodes[giver],
                        taker=self._nodes[taker],
                        used=1 + int(self._random.expovariate(0.12)),
                    )

    def _make_points(self, index: int, count: int) -> Iterator[TrainingPoint]:
        """Yield `count` training points of node `index`, oldest first; its rewards rise."""
        random = self._random
        low = float(self._population.floors[index].mean())
        gain = float(self._population.ceilings[index].mean()) - low
        for number in range(1, count + 1):
            done = number / count
            reward = low + gain * (1 - 0.02**done) + random.gauss(0, 0.03)
            yield TrainingPoint(
                node=self._nodes[index],
                season=self._season,
                at=self._clock.now - (count - number) * _POINTS_APART,
                step=12 * number,
                training_reward=min(1.0, max(0.0, reward)),
                reflection={
                    "recheck": round(0.05 + 0.3 * done * random.random(), 3),
                    "hesitation": round(0.2 - 0.12 * done * random.random(), 3),
                    "exploration": round(0.04 + 0.1 * random.random(), 3),
                },
                informative_share=round(0.7 - 0.3 * done + random.gauss(0, 0.04), 3),
            )


def _complete(asked: DemoQuestion, *, right: bool, random: Random) -> dict[str, object]:
    """Return a completion with a verdict, as an item of `ArchivedRollout.completions`."""
    return {
        "text": random.choice(asked.right if right else asked.wrong),
        "finish_reason": "stop",
        "score": float(right),
        "solved": right,
        "verdict": "right" if right else "wrong",
    }
