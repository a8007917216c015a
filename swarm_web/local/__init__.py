"""Run the whole site on one machine: `python -m swarm_web.local up`, or `demo` with nodes.

Postgres, Valkey, the web processes, a Celery worker and beat run under one supervisor in the
foreground. Nothing here imports Django: the package starts processes and watches them.
"""


class LaunchError(Exception):
    """A start that failed. The message says what happened, why, and what to do."""
