"""The command lines of a local site, the same as in the containers and the docs."""

import sys

MIGRATE = ("python", "manage.py", "migrate", "--noinput")
COLLECT_STATIC = ("python", "manage.py", "collectstatic", "--noinput", "--verbosity", "0")
COMPILE_MESSAGES = ("python", "-m", "swarm_web.catalogues", "compile")
CREATE_DEMO_SEASON = ("python", "manage.py", "create_season", "--demo")
# A fixed pace: a sharing node makes as many steps as an isolated one, though its steps take longer,
# scores rise over several rounds, and the machine stays usable.
DEMO_TRAINING = ("--step-seconds", "2")
# Without gossip and mingle: the workers of a site need no messages from each other.
WORKER = (
    *("python", "-m", "celery", "-A", "swarm_web", "worker", "-l", "WARNING", "-c", "1"),
    *("--without-gossip", "--without-mingle"),
)
# uvicorn's sans-I/O websockets, on sockets that are closed if the other end reads nothing.
WEBSOCKETS = "swarm_web.gateway.transport:NodeTransport"


def serve_web(*, host: str, port: int) -> tuple[str, ...]:
    """Return the command of a web process.

    The class that WEBSOCKETS names serves the websockets. Messages may be up to 4 MiB long and are
    not compressed. By default uvicorn would compress them, which takes 50 times the CPU time for a
    message of 27 kB, and 35 kB of memory for an idle connection. By default uvicorn would also
    trust the headers of any proxy at 127.0.0.1. Here only the setting TRUSTED_PROXIES decides.
    """
    return (
        *("python", "-m", "uvicorn", "swarm_web.asgi:application"),
        *("--host", host, "--port", str(port), "--no-proxy-headers"),
        *("--ws", WEBSOCKETS, "--ws-per-message-deflate", "false"),
        *("--ws-max-size", "4194304", "--no-access-log", "--timeout-graceful-shutdown", "3"),
    )


def run_beat(schedule: str | None = None) -> tuple[str, ...]:
    """Return the command of Celery's beat.

    If `schedule` is given, beat writes to this file every few minutes, and a container's health
    check reads the file's age. By default there is no file, because a file left incomplete by a
    crash would prevent the start. Without a file, beat does not remember when tasks last ran, but
    most tasks are due within seconds.
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
    """Return the command that joins the site at `url`; `state` is the client's state folder."""
    command = ("swarm-node", "join", url, "--token-file", token_file)
    return (*command, "--model", model, "--arm", arm, "--state-dir", state, "--plain")


def here(command: tuple[str, ...]) -> tuple[str, ...]:
    """Return the command with its program's name replaced by a path.

    For `python` this is the path of the running interpreter. For another name it is the path of the
    program with this name in the interpreter's folder.
    """
    program, *arguments = command
    if program == "python":
        return (sys.executable, *arguments)
    return (sys.executable.rpartition("/")[0] + f"/{program}", *arguments)
