"""The keys in Redis that several modules of the relay use; `relay.hub` says what they hold."""

CREDITS = "relay:credits"
CHECKS = "relay:checks"


def season_key(season_id: int, name: str) -> str:
    """Return the Redis key of a season for `name`.

    In a Redis cluster, all keys of a season are in one hash slot, so a script can use several.
    """
    return f"relay:{{{season_id}}}:{name}"
