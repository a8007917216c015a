"""The keys in Redis that several modules of the relay use; `relay.hub` says what they hold."""

CREDITS = "relay:credits"
CHECKS = "relay:checks"


def season_key(season_id: int, name: str) -> str:
    """Return the key `name` of a season; all keys of a season are in one slot of a cluster."""
    return f"relay:{{{season_id}}}:{name}"
