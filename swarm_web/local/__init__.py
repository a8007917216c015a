"""Run the whole site on one machine: `python -m swarm_web.local up`, or `demo` with nodes.

Real Postgres and Valkey, the web process, a Celery worker and beat, kept alive by one supervisor
in the foreground. Nothing here imports Django: it starts processes and watches them.
"""
