"""The keys in Redis that several modules of the relay use; `relay.hub` says what they hold."""

CREDITS = "relay:credits"
CHECKS = "relay:checks"


def given_key(season_id: int) -> str:
    """Return the key of the hash of how many times each node's rollouts were given to others."""
    return f"relay:{{{season_id}}}:given"


def held_key(season_id: int) -> str:
    """Return the key of how many rollouts the season's pool holds."""
    return f"relay:{{{season_id}}}:held"


def given_list_key(season_id: int, node_id: int) -> str:
    """Return the key of the list of rollouts that one node was given."""
    return f"relay:{{{season_id}}}:list:{node_id}"


def holders_key(season_id: int) -> str:
    """Return the key of the hash of nodes' tenures (`relay.handover`)."""
    return f"relay:{{{season_id}}}:holders"


def lapsed_key(season_id: int) -> str:
    """Return the key of the set of nodes whose declarations do not count."""
    return f"relay:{{{season_id}}}:lapsed"


def weights_key(season_id: int) -> str:
    """Return the key of the hash of hand-out weights of nodes, where they are not 1."""
    return f"relay:{{{season_id}}}:weights"


def turn_key(season_id: int) -> str:
    """Return the key that exists for a while after a process has offered rollouts to check."""
    return f"relay:{{{season_id}}}:turn"


def checked_key(season_id: int) -> str:
    """Return the key of the sorted set of publications that were checked."""
    return f"relay:{{{season_id}}}:checked"
