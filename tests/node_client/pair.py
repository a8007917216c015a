"""Two processes of one node in an environment like torchrun's, with a single import of torch.

`python -m tests.node_client.pair MODULE ARGUMENT...` imports what a node needs, which takes
seconds, then runs MODULE in two forks of itself. As with torchrun, a failing process ends the
other one.
"""

import os
import runpy
import signal
import sys
from typing import NoReturn

import node_client.runtime.run  # noqa: F401 - once for both
import tests.node_client.fakes  # noqa: F401
from swarm_web.local.probes import free_port

PROCESSES = 2


def launch(module: str, *arguments: str) -> NoReturn:
    """Run the module in two processes; exit with 0 if both succeeded."""
    port = free_port()
    children = {fork(rank, port, module, *arguments) for rank in range(PROCESSES)}
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the node.
    failed = False
    while children:
        pid, status = os.wait()
        children.discard(pid)
        if status:
            failed = True
            for other in children:
                os.kill(other, signal.SIGTERM)
    sys.exit(failed)


def fork(rank: int, port: int, module: str, *arguments: str) -> int:
    """Return the id of a new process that runs the module with this rank."""
    if child := os.fork():
        return child
    os.environ |= {
        **{name: str(rank) for name in ("RANK", "LOCAL_RANK")},
        **{name: str(PROCESSES) for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE")},
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
    sys.exit()


if __name__ == "__main__":
    launch(*sys.argv[1:])
