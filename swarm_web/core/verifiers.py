"""The verifier children of this process: started when first needed, ended with the process."""

import atexit
from functools import cache

from django.conf import settings

from swarm_tasks.pool import VerifierPool


@cache
def process_verifier() -> VerifierPool:
    """Return the verifiers of this process."""
    verifier = VerifierPool(settings.VERIFIER_CHILDREN)
    atexit.register(verifier.close)
    return verifier
