"""This process's pool of verifier child processes, started on first use and stopped at exit."""

import atexit
from functools import cache

from django.conf import settings

from swarm_tasks.pool import VerifierPool


@cache
def process_verifier() -> VerifierPool:
    """Return this process's pool of verifier children."""
    verifier = VerifierPool(settings.VERIFIER_CHILDREN)
    atexit.register(verifier.close)
    return verifier
