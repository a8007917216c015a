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
    """A `RolloutExchange` for a node without a swarm: it publishes and fetches nothing."""

    def publish(self, rollouts: Sequence[Rollout], *, informative: Sequence[str]) -> None:
        """Discard the rollouts."""

    def fetch(self, count: int) -> list[ExternalRollout]:
        """Return no rollouts."""
        return []


def train_offline(settings: Settings, *, equipment: Equipment) -> Training:
    """Return the training of a node without a coordinator, on the built-in season."""
    training = Training(settings=settings, equipment=equipment, exchange=NoExchange())
    training.set_rules(TrainingRules(season=practice_season(), node="alone", arm="isolated"))
    return training
