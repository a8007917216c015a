"""Run the whole site on this machine. Ctrl-C stops it; the next start keeps its data."""

import argparse
import asyncio
import os
import sys
from pathlib import Path

from swarm_web.local import LaunchError
from swarm_web.local.commands import here
from swarm_web.local.console import Console
from swarm_web.local.demo import plan_nodes
from swarm_web.local.site import load_settings, locked_state
from swarm_web.local.stack import PROJECT, LaunchPlan, Stack
from swarm_web.local.supervisor import Supervisor, watch_for_interrupt


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of `up`, `demo` and `manage`."""
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument(
        "--state-dir",
        type=Path,
        default=PROJECT / "var",
        help="folder for the databases and all other data (default: var/)",
    )
    parser = argparse.ArgumentParser(prog="python -m swarm_web.local", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    up = verbs.add_parser("up", parents=[common], help="start the site")
    demo = verbs.add_parser("demo", parents=[common], help="start the site and nodes that train")
    for verb in (up, demo):
        verb.add_argument("--port", type=int, default=8000, help="on 127.0.0.1 (default: 8000)")
        verb.add_argument(
            "--web-processes",
            type=int,
            choices=range(1, 65),
            metavar="N",
            default=1,
            help="number of web processes, on this port and the ports after it (default: 1)",
        )
    demo.add_argument("--nodes", type=int, default=4, help="number of nodes (default: 4)")
    manage = verbs.add_parser(
        "manage", parents=[common], help="run a manage.py command on the running site"
    )
    manage.add_argument("command", nargs=argparse.REMAINDER, help="for example: createsuperuser")
    return parser


def main(argv: list[str]) -> int:
    """Run `up`, `demo` or `manage` as `argv` says, and return the exit status."""
    arguments = build_parser().parse_args(argv)
    console = Console(sys.stdout)
    state = arguments.state_dir.resolve()
    try:
        if arguments.verb == "manage":
            manage_site(state, arguments.command)
        nodes = plan_nodes(arguments.nodes) if arguments.verb == "demo" else []
        with locked_state(state) as lock:
            plan = LaunchPlan(
                state=state,
                port=arguments.port,
                web_processes=arguments.web_processes,
                nodes=nodes,
                outer=os.environ,
            )
            asyncio.run(launch(plan, console=console, lock=lock))
    except LaunchError as error:
        console.write(f"Stopped: {error}")
        return 1
    except KeyboardInterrupt:
        return 130  # Ctrl-C before anything was started.
    return 0


async def launch(plan: LaunchPlan, *, console: Console, lock: int) -> None:
    """Run the site until it is stopped. Raises LaunchError when it cannot start.

    All processes of the site inherit `lock`, the descriptor of the state folder's lock file.
    """
    async with Supervisor(console, keep_open=[lock]) as supervisor:

        def stop(watch: asyncio.Task[None]) -> None:
            if not watch.cancelled():  # otherwise the site has already stopped
                supervisor.request_stop()

        watch = asyncio.create_task(watch_for_interrupt(os.getppid()))
        watch.add_done_callback(stop)
        await Stack(plan, console=console, supervisor=supervisor).run()


def manage_site(state: Path, command: list[str]) -> None:
    """Replace this process with `manage.py`, run with the settings of the site in `state`.

    Raises LaunchError when there is no site.
    """
    program = here(("python", str(PROJECT / "manage.py"), *command))
    os.execve(program[0], program, {**os.environ, **load_settings(state)})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
