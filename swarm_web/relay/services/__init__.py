"""Work on rollouts outside of the pool: archiving, checks and credits."""

from swarm_web.relay.services.archiving import check_samples, prune_archive, store_samples
from swarm_web.relay.services.conduct import evaluate_conduct, set_level
from swarm_web.relay.services.crediting import book_credits
from swarm_web.relay.services.declarations import check_declarations, restore_declarations

__all__ = [
    "book_credits",
    "check_declarations",
    "check_samples",
    "evaluate_conduct",
    "prune_archive",
    "restore_declarations",
    "set_level",
    "store_samples",
]
