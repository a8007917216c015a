"""The relay's tables: contributions, conduct, and a sample of the shared rollouts."""

from swarm_web.relay.models.archive import ArchivedRollout, Learned
from swarm_web.relay.models.conduct import Conduct
from swarm_web.relay.models.contributions import Contribution
from swarm_web.relay.models.history import CreditSource, Exchange, TrainingPoint

__all__ = [
    "ArchivedRollout",
    "Conduct",
    "Contribution",
    "CreditSource",
    "Exchange",
    "Learned",
    "TrainingPoint",
]
