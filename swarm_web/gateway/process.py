"""Writes the unsaved data of a web process when it stops: counts, refusals and pool changes."""

from swarm_web.core.counters import pending_counts
from swarm_web.core.refusals import pending_refusals
from swarm_web.gateway.roster import roster
from swarm_web.relay.hub import hub


async def close_process() -> None:
    """Stop background tasks and write unsaved data; call it when all connections are closed."""
    await roster().close()
    await hub().close()
    await pending_refusals().close()
    await pending_counts().close()
