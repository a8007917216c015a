"""The keys in Redis that several modules of the relay use; `relay.hub` says what they hold."""

CREDITS = "relay:credits"
CHECKS = "relay:checks"


def season_key(season_id: int, name: str) -> str:
    """Return a key of a season; all of its keys are in one slot of a cluster."""
    return f"relay:{{{season_id}}}:{name}"
