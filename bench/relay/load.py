"""Simulated nodes that load a relay with node-rounds: publish rollouts, request others, report.

They run in a separate process, so that their CPU time does not count as the server's:

    python -m bench.relay.load SOCKET TOKENS --node-rounds 2000

`TOKENS` is a file with a token on each line. The process prints `ready` once each node has
connected and made one node-round, starts when it reads a line, and prints its figures as one JSON
object.

Without `--node-rounds` it runs `run_storm` instead: all nodes connect, and when the process reads a
line, they lose their connections and reconnect.
"""

import argparse
import asyncio
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import count
from pathlib import Path

from websockets.exceptions import WebSocketException

from bench.node_socket import MAX_CONNECTING, join, request
from swarm_protocol.errors import ErrorCode
from swarm_protocol.messages import (
    Completion,
    NodeMessage,
    PublishRollouts,
    Refused,
    ReportTraining,
    RequestRollouts,
    Rollout,
    RolloutName,
    RolloutsPublished,
    RolloutsSampled,
    ServerMessage,
    TaskSpec,
    TrainingReported,
)
from swarm_tasks.keyspace import Part, keyed_index

ROLLOUTS = 8
COMPLETIONS = 8
# About 3.3 kB of JSON per rollout, 27 kB per step.
TEXT = "the answer of a small model that thinks step by step about what it was asked " * 5
# Nodes reconnect concurrently; with more than this, the listen backlog overflows.
_MAX_RECONNECTING = 1000
_MAX_RETRY_PAUSE_S = 5.0


@dataclass
class Load:
    """The figures of a run.

    `drawn` counts the external rollouts received. `latencies` has the milliseconds that each
    request for rollouts took.
    """

    node_rounds: int = 0
    seconds: float = 0.0
    drawn: int = 0
    latencies: list[float] = field(default_factory=list)

    def describe(self) -> dict[str, float]:
        """Return the figures, with the median and the 99th percentile instead of all latencies."""
        ordered = sorted(self.latencies)
        figures = asdict(self) | {
            "p50_ms": ordered[len(ordered) // 2],
            "p99_ms": ordered[len(ordered) * 99 // 100],
        }
        del figures["latencies"]
        return figures


class LoadNode:
    """A simulated node that puts load on the relay; it may lose its connection and reconnect."""

    def __init__(self, url: str, token: str, number: int, gate: asyncio.Semaphore) -> None:
        """`gate` limits concurrent connecting."""
        self._url, self._token, self._number, self._gate = url, token, number, gate
        self._ids = count(1)
        self._step = 0
        self._external = 0
        # Only one node-round at a time, however slow the server is.
        self._turn = asyncio.Lock()

    async def connect(self) -> "LoadNode":
        """Connect, or connect again; return this node once the relay has sent its welcome."""
        self.connection, welcome = await join(self._url, self._token, self._gate)
        assert welcome.season is not None, "no season is running"
        self._season = welcome.season
        return self

    async def run_round(self, load: Load, *, is_lost: bool = False) -> None:
        """Run one node-round, and add its figures to `load`.

        The node publishes ROLLOUTS rollouts, requests as many external ones, and reports. If
        `is_lost`, it first loses its connection and connects again.
        """
        async with self._turn:
            if is_lost:
                self.abort()
                await self.connect()
            self._step += 1
            await self._run_round(load, step=self._step)

    async def _run_round(self, load: Load, *, step: int) -> None:
        published = await self._request(
            PublishRollouts(id=str(next(self._ids)), rollouts=self._make_rollouts(step))
        )
        assert isinstance(published, RolloutsPublished), published
        assert published.accepted == ROLLOUTS, published
        requested_at = time.perf_counter()
        sampled = await self._request(RequestRollouts(id=str(next(self._ids)), count=ROLLOUTS))
        load.latencies.append(1000 * (time.perf_counter() - requested_at))
        assert isinstance(sampled, RolloutsSampled), sampled
        load.drawn += len(sampled.rollouts)
        self._external += len(sampled.rollouts)
        used = [RolloutName(each.node, each.rollout.id) for each in sampled.rollouts]
        reported = await self._request(self._make_report(step, used))
        assert isinstance(reported, TrainingReported), reported
        load.node_rounds += 1

    def _make_rollouts(self, step: int) -> list[Rollout]:
        choice = self._season.tasks[0]
        return [
            Rollout(
                id=f"{step}-{number}",
                task=TaskSpec(
                    dataset=choice.dataset,
                    config=choice.config,
                    seed=self._season.seed,
                    index=keyed_index(
                        key=b"load",
                        part=Part.TRAINING,
                        dataset=choice.dataset,
                        counter=self._number * 1_000_000 + step * ROLLOUTS + number,
                    ),
                    generator=self._season.generator,
                ),
                completions=[
                    Completion(text=f"{TEXT}{step} {each}", finish_reason="stop")
                    for each in range(COMPLETIONS)
                ],
                model="bench",
                step=step,
                tokenizer="bench",
            )
            for number in range(ROLLOUTS)
        ]

    def _make_report(self, step: int, used: list[RolloutName]) -> ReportTraining:
        return ReportTraining(
            id=str(next(self._ids)),
            step=step,
            training_reward=0.5,
            informative_share=0.5,
            local_used=step * ROLLOUTS,
            external_used=self._external,
            used=used,
        )

    async def _request(self, message: NodeMessage) -> ServerMessage:
        """Return the reply to a message; resend a rate-limited message, as clients do."""
        while True:
            reply = await request(self.connection, message)
            if not isinstance(reply, Refused) or reply.code != ErrorCode.RATE_LIMITED:
                return reply
            await asyncio.sleep(reply.retry_after or 0)

    def abort(self) -> None:
        """Abort the connection without a closing handshake, as if a cable were cut."""
        self.connection.transport.abort()


async def connect_all(
    url: str, tokens: Sequence[str], *, max_connecting: int = MAX_CONNECTING
) -> list[LoadNode]:
    """Connect a node for each token, `max_connecting` at the same time."""
    gate = asyncio.Semaphore(max_connecting)
    return await asyncio.gather(
        *(LoadNode(url, token, i, gate).connect() for i, token in enumerate(tokens))
    )


async def run_load(
    url: str,
    tokens: Sequence[str],
    *,
    node_rounds: int,
    per_second: float | None,
    lose_every: int | None,
) -> None:
    """Run `node_rounds` node-rounds, the same number for each node, and print the figures.

    `node_rounds` is rounded down to a multiple of the number of nodes. Each node first runs one
    node-round that does not count. The load starts when a line of input is read.

    If `per_second` is None, each node starts its next node-round when its last one has ended.
    Otherwise node-rounds start at equal intervals, however slow the server is (an open loop). In
    that case, if `lose_every` is n, the first of every n node-rounds of all nodes together begins
    with the loss of its node's connection.
    """
    nodes = await connect_all(url, tokens)
    warm = Load()
    await asyncio.gather(*(node.run_round(warm) for node in nodes))
    print("ready", flush=True)  # noqa: T201 - the parent reads it
    sys.stdin.readline()
    load, each = Load(), node_rounds // len(nodes)
    began = time.perf_counter()
    if per_second is None:
        await asyncio.gather(*(_run_rounds(node, load, each) for node in nodes))
    else:
        await _run_rounds_at_rate(nodes * each, load, per_second, lose_every)
    load.seconds = time.perf_counter() - began
    print(json.dumps(load.describe()), flush=True)  # noqa: T201


async def _run_rounds(node: LoadNode, load: Load, rounds: int) -> None:
    for _ in range(rounds):
        await node.run_round(load)


async def _run_rounds_at_rate(
    turns: Sequence[LoadNode], load: Load, per_second: float, lose_every: int | None
) -> None:
    began = time.perf_counter()
    running: list[asyncio.Task[None]] = []
    for number, node in enumerate(turns):
        await asyncio.sleep(max(0.0, began + number / per_second - time.perf_counter()))
        is_lost = lose_every is not None and number % lose_every == 0
        running.append(asyncio.create_task(node.run_round(load, is_lost=is_lost)))
    await asyncio.gather(*running)


async def run_storm(url: str, tokens: Sequence[str]) -> None:
    """Connect all nodes; after a line of input abort all connections at once, and reconnect.

    Both times, print the seconds until all nodes are connected, and the number of failed attempts
    by error message.
    """
    nodes: list[LoadNode] = []
    for at_once in (MAX_CONNECTING, _MAX_RECONNECTING):
        gate, failures = asyncio.Semaphore(at_once), Counter[str]()
        began = time.perf_counter()
        for node in nodes:
            node.abort()
        nodes = await asyncio.gather(
            *(_reconnect(url, t, i, gate, failures) for i, t in enumerate(tokens))
        )
        seconds = time.perf_counter() - began
        print(json.dumps({"seconds": seconds, "failures": failures}), flush=True)  # noqa: T201
        await asyncio.to_thread(sys.stdin.readline)


async def _reconnect(
    url: str, token: str, number: int, gate: asyncio.Semaphore, failures: Counter[str]
) -> LoadNode:
    """Connect a node, and retry until it succeeds; count the failures by error message."""
    while True:
        try:
            return await LoadNode(url, token, number, gate).connect()
        except (OSError, WebSocketException) as problem:
            failures[str(problem)[:80]] += 1
            await asyncio.sleep(random.uniform(0, _MAX_RETRY_PAUSE_S))


def main(argv: Sequence[str]) -> int:
    """Load a relay and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("socket")
    parser.add_argument("tokens", type=Path)
    parser.add_argument("--node-rounds", type=int, help="without it: connect, and come back")
    parser.add_argument("--per-second", type=float)
    parser.add_argument("--lose-every", type=int, metavar="N", help="node-rounds; lose connection")
    options = parser.parse_args(argv)
    tokens = options.tokens.read_text().split()
    if options.node_rounds is None:
        asyncio.run(run_storm(options.socket, tokens))
    else:
        asyncio.run(
            run_load(
                options.socket,
                tokens,
                node_rounds=options.node_rounds,
                per_second=options.per_second,
                lose_every=options.lose_every,
            )
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
