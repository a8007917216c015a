"""Run a launcher with only the two database servers: `python -m tests.local.databases FOLDER`.

Prints their addresses as one line of JSON when they are ready, and runs until it is stopped.
"""

import asyncio
import json
import sys
from pathlib import Path

from swarm_web.local.console import Console
from swarm_web.local.databases import prepare_postgres, prepare_valkey
from swarm_web.local.site import locked_state
from swarm_web.local.supervisor import Supervisor


async def main(folder: Path) -> None:
    with locked_state(folder) as lock:
        async with Supervisor(Console(sys.stderr), keep_open=[lock]) as supervisor:
            servers = prepare_postgres(folder / "postgres"), prepare_valkey(folder / "valkey")
            await supervisor.start(*(server.process for server in servers))
            sys.stdout.write(json.dumps([server.url for server in servers]) + "\n")
            sys.stdout.flush()
            await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
