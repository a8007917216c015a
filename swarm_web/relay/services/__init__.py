"""What happens to rollouts: shared and drawn, kept as a sample, credited to who made them."""

from swarm_web.relay.services.archiving import check_samples, prune_archive, store_samples
from swarm_web.relay.services.crediting import book_credits
from swarm_web.relay.services.reporting import record_training
from swarm_web.relay.services.sharing import publish_rollouts, sample_rollouts

__all__ = [
    "book_credits",
    "check_samples",
    "prune_archive",
    "publish_rollouts",
    "record_training",
    "sample_rollouts",
    "store_samples",
]
