"""Bodies of answers about rollouts."""

from typing import Any

from swarm_web.relay.models import ArchivedRollout

# What is copied as it is.
_ROLLOUT = (
    *("model", "step", "dataset", "spec", "question", "completions", "solved", "total"),
    *("published_at", "learned_by"),
)


def describe_rollout(rollout: ArchivedRollout) -> dict[str, Any]:
    """Describe a rollout of the archive, and who learned from it."""
    return {
        "rollout": rollout.rollout,
        "node": rollout.author.name,
        "season": rollout.season.name,
        **{name: getattr(rollout, name) for name in _ROLLOUT},
        "learners": [learned.node.name for learned in rollout.learners],
    }
