"""The keys in Redis that several modules of the relay use; `relay.hub` says what they hold."""

CREDITS = "relay:credits"
CHECKS = "relay:checks"


def season_key(season_id: int, name: str) -> str:
    """Return the full Redis key of a season's value called `name`.

    In a Redis cluster, all keys of a season are in one hash slot, so a script can use several keys.
    """
    return f"relay:{{{season_id}}}:{name}"
