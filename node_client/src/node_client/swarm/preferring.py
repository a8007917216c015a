"""How a node asks the pool to draw, and what a season allows of it."""

from collections.abc import Iterator, Mapping, Sequence

from node_client.settings.choices import ExternalPool
from swarm_protocol.messages import Preference, SeasonInfo

PREFERENCES: Mapping[ExternalPool, Preference] = {
    "uniform": "any",
    "informative": "informative",
    "by-node": "by_node",
    "by-task": "by_task",
    "fresh": "fresh",
}
# What older coordinators, which do not say it, let nodes prefer.
_OLDER: Sequence[str] = ("any", "informative")


def allowed_preference(wish: Preference, season: SeasonInfo | None) -> Preference:
    """Return what a node may ask for that wishes for this; `any` is allowed in every season."""
    allowed = _OLDER if season is None else season.sampling or _OLDER
    return wish if wish in allowed else "any"


def explain_sampling(pool: ExternalPool, season: SeasonInfo) -> Iterator[str]:
    """Say that the season does not let the pool draw as the owner wishes, if so."""
    wish = PREFERENCES[pool]
    if allowed_preference(wish, season) != wish:
        yield (
            f"Rollouts of others are drawn uniformly: the season {season.name} does not allow"
            f" external_pool = {pool}."
        )
