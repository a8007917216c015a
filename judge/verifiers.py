"""The one verifier child of this process: started when first needed, ended with the process."""

import atexit
from functools import cache

from swarm_tasks.verifier import Verifier


@cache
def process_verifier() -> Verifier:
    """Return the verifier of this process."""
    verifier = Verifier()
    atexit.register(verifier.close)
    return verifier
