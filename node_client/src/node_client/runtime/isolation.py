"""How well the verifier's child, which meets strangers' text, is shut in on this system."""

import logging

from node_client.display.view import View
from node_client.runtime.worker import ModelWorker
from swarm_protocol.errors import RefusedError
from swarm_tasks.verifier import Verifier

EXPECTED = frozenset({"rlimits", "network", "filesystem"})

log = logging.getLogger(__name__)


def describe_missing(isolation: frozenset[str]) -> str:
    """Return which of the expected protections did not take hold and what helps, or nothing."""
    missing = sorted(EXPECTED - isolation)
    if not missing:
        return ""
    return f"This system does not offer: {', '.join(missing)}. Use Linux, or a container."


async def warn_of_missing(verifier: Verifier, *, worker: ModelWorker, view: View) -> None:
    """Tell the owner what the child of this run goes without."""
    try:
        missing = describe_missing(await worker.run(lambda: verifier.isolation))
    except RefusedError:
        return  # the first step says why there is no child
    if missing:
        notice = f"The verifier's child is less shut in than it should be. {missing}"
        view.note_notice(notice)
        log.warning(notice)
