"""Training without a coordinator, or while no season is running."""

from collections.abc import Sequence

from node_client.runtime.training import Equipment, Training, TrainingRules
from node_client.settings.config import Settings
from swarm_protocol.messages import ExternalRollout, Rollout, SeasonInfo
from swarm_tasks.allowlist import GENERATOR
from swarm_tasks.answers import NEWEST_RULES
from swarm_tasks.starter import STARTER_SEASON_SEED, STARTER_TASKS


def practice_season() -> SeasonInfo:
    """Return the built-in season: short questions that the demo models can learn to answer."""
    return SeasonInfo(
        name="practice",
        seed=STARTER_SEASON_SEED,
        generator=GENERATOR,
        tasks=list(STARTER_TASKS),
        completions=8,
        local=4,
        external=4,
        max_new_tokens=24,
        temperature=0.0,
        answers=NEWEST_RULES,
    )


class NoExchange:
    """A `RolloutExchange` for a node without a swarm."""

    def publish(self, rollouts: Sequence[Rollout], *, informative: Sequence[str]) -> None:
        """Discard the rollouts."""

    def fetch(self, count: int) -> list[ExternalRollout]:
        """Return no rollouts."""
        return []


class OfflineNode:
    """A node that trains without a coordinator."""

    def __init__(self, settings: Settings, *, equipment: Equipment) -> None:
        self._view = equipment.view
        self._training = Training(settings=settings, equipment=equipment, exchange=NoExchange())

    async def run(self) -> None:
        """Train on the built-in season until stopped. Raises NodeError."""
        self._training.set_rules(
            TrainingRules(season=practice_season(), node="alone", arm="isolated")
        )
        await self._training.run()

    def stop(self) -> None:
        """Finish the current step, save, and return from `run`."""
        self._view.stopping = True
        self._training.stop()
