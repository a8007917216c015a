"""Warns of missing protections of the verifier child, the process that handles untrusted text."""

import logging

from node_client.display.view import NodeView
from node_client.runtime.worker import ModelWorker
from swarm_protocol.errors import RefusedError
from swarm_tasks.verifier import Verifier

EXPECTED = frozenset({"rlimits", "network", "filesystem"})

log = logging.getLogger(__name__)


def describe_missing(isolation: frozenset[str]) -> str:
    """Return the missing protections and a remedy as text; an empty text if none is missing.

    `isolation` has the names of the active protections.
    """
    missing = sorted(EXPECTED - isolation)
    if not missing:
        return ""
    return f"This system does not offer: {', '.join(missing)}. Use Linux, or a container."


async def warn_of_missing(verifier: Verifier, *, worker: ModelWorker, view: NodeView) -> None:
    """Warn the owner about protections that this run's verifier child lacks."""
    try:
        missing = describe_missing(await worker.run(lambda: verifier.isolation))
    except RefusedError:
        return  # the first step reports why there is no child
    if missing:
        notice = f"The verifier child is less isolated than it should be. {missing}"
        view.show_notice(notice)
        log.warning(notice)
