"""A real Valkey cluster of three masters, run with the same program as the single server."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import redis

from swarm_web.local.databases import LocalServer, prepare_valkey
from swarm_web.local.probes import HOST, free_port
from swarm_web.local.site import keep_secret
from tests.processes import Running, eventually, running

SLOTS = 16384
MASTERS = 3


@dataclass(frozen=True)
class Cluster:
    """The address of the first master, and all masters."""

    url: str
    masters: list[Running]


@contextmanager
def valkey_cluster(folder: Path) -> Iterator[Cluster]:
    """Run a cluster in `folder` until the block ends; enter the block when it is complete."""
    with ExitStack() as stack:
        servers = [_prepare_node(folder, number) for number in range(MASTERS)]
        nodes = [
            stack.enter_context(running(server.process, log=folder / f"{number}.log"))
            for number, server in enumerate(servers)
        ]
        clients = [
            stack.enter_context(redis.Redis.from_url(server.url, decode_responses=True))
            for server in servers
        ]
        _form_cluster(clients)
        yield Cluster(servers[0].url, nodes)


def _prepare_node(folder: Path, number: int) -> LocalServer:
    """Prepare a server for a cluster; all have the same password."""
    own = folder / str(number)
    own.mkdir(mode=0o700, parents=True)
    (own / "password").write_text(keep_secret(folder / "password"))
    server = prepare_valkey(own)
    with (own / "valkey.conf").open("a") as configuration:
        # By default the port for the other nodes is 10,000 higher, which may be invalid.
        configuration.write(
            f"cluster-enabled yes\ncluster-port {free_port()}\ncluster-node-timeout 2000\nsave ''\n"
        )
    return server


def _form_cluster(clients: Sequence[redis.Redis]) -> None:
    """Divide the slots among the nodes and let each meet the first one."""
    bounds = [SLOTS * part // len(clients) for part in range(len(clients) + 1)]
    port = clients[0].connection_pool.connection_kwargs["port"]
    bus = clients[0].config_get("cluster-port")["cluster-port"]
    for number, client in enumerate(clients):
        # Different epochs, because nodes would first have to resolve a conflict of equal ones.
        _run(client, "SET-CONFIG-EPOCH", number + 1)
        _run(client, "ADDSLOTSRANGE", bounds[number], bounds[number + 1] - 1)
    for client in clients[1:]:
        _run(client, "MEET", HOST, port, bus)
    for client in clients:
        eventually(partial(_is_complete, client), within_s=10, what="a node knows the cluster")


def _is_complete(client: redis.Redis) -> bool:
    info = _run(client, "INFO")
    return bool(info["cluster_state"] == "ok" and info["cluster_known_nodes"] == str(MASTERS))


def _run(client: redis.Redis, command: str, *arguments: object) -> Any:
    return client.execute_command(f"CLUSTER {command}", *arguments)  # type: ignore[no-untyped-call]
