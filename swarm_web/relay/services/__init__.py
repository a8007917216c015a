"""What happens to rollouts: shared and drawn, sampled, checked, credited to who made them."""

from swarm_web.relay.services.archiving import check_samples, prune_archive, store_samples
from swarm_web.relay.services.crediting import book_credits
from swarm_web.relay.services.declarations import check_declarations, restore_declarations
from swarm_web.relay.services.reporting import record_training
from swarm_web.relay.services.sharing import publish_rollouts, sample_rollouts

__all__ = [
    "book_credits",
    "check_declarations",
    "check_samples",
    "prune_archive",
    "publish_rollouts",
    "record_training",
    "restore_declarations",
    "sample_rollouts",
    "store_samples",
]
