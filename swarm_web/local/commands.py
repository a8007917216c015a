"""The commands of a site's processes: here, in the containers and in the documents."""

import sys

MIGRATE = ("python", "manage.py", "migrate", "--noinput")
COLLECT_STATIC = ("python", "manage.py", "collectstatic", "--noinput", "--verbosity", "0")
COMPILE_MESSAGES = ("python", "-m", "swarm_web.catalogues", "compile")
CREATE_DEMO_SEASON = ("python", "manage.py", "create_season", "--demo")
# As many steps for a node that shares as for one alone, though its steps take longer; visitors see
# scores rise over several rounds, and the machine has time for other things.
DEMO_TRAINING = ("--step-seconds", "2")
# Without gossip and mingle: the workers of a site have nothing to tell each other.
WORKER = (
    *("python", "-m", "celery", "-A", "swarm_web", "worker", "-l", "WARNING", "-c", "1"),
    *("--without-gossip", "--without-mingle"),
)
# uvicorn's sans-I/O ones, on sockets that end when nobody takes what was sent.
WEBSOCKETS = "swarm_web.gateway.transport:NodeTransport"


def serve_web(*, host: str, port: int) -> tuple[str, ...]:
    """Return the web process: our websockets, without compression, 4 MiB a message.

    Only TRUSTED_PROXIES decides about proxies' headers; uvicorn would trust them from 127.0.0.1.

    uvicorn compresses every socket by default, which costs a 27 kB message 50 times the CPU time
    and an idle connection 35 kB.
    """
    return (
        *("python", "-m", "uvicorn", "swarm_web.asgi:application"),
        *("--host", host, "--port", str(port), "--no-proxy-headers"),
        *("--ws", WEBSOCKETS, "--ws-per-message-deflate", "false"),
        *("--ws-max-size", "4194304", "--no-access-log", "--timeout-graceful-shutdown", "3"),
    )


def run_beat(schedule: str | None = None) -> tuple[str, ...]:
    """Return Celery's clock; it writes to the file `schedule`, if given, every few minutes.

    A container's health check looks at the file's age. Elsewhere there is none: all that beat does
    is due within seconds, and half a file, left by a crash, would keep it from starting.
    """
    memory = ("-S", "celery.beat:Scheduler") if schedule is None else ("-s", schedule)
    return ("python", "-m", "celery", "-A", "swarm_web", "beat", "-l", "WARNING", *memory)


def create_node(*, name: str, arm: str, token_file: str) -> tuple[str, ...]:
    """Return the command that registers a node and writes its token to a file."""
    command = ("python", "manage.py", "create_node", "--name", name)
    return (*command, "--arm", arm, "--token-file", token_file)


def join_swarm(
    *, url: str, token_file: str, model: str, state: str, arm: str = "swarm"
) -> tuple[str, ...]:
    """Return the node client's command."""
    command = ("swarm-node", "join", url, "--token-file", token_file)
    return (*command, "--model", model, "--arm", arm, "--state-dir", state, "--plain")


def here(command: tuple[str, ...]) -> tuple[str, ...]:
    """Return the command with this interpreter and the programs installed beside it."""
    program, *arguments = command
    if program == "python":
        return (sys.executable, *arguments)
    return (sys.executable.rpartition("/")[0] + f"/{program}", *arguments)
