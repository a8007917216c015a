"""Six hostile nodes in their own process, each with a different attack.

`python -m tests.swarm.hostile URL TOKENS MARK` reads a token per node from the lines of a file, and
runs until it is terminated. MARK is a file that is created if the text of an answer is executed.
"""

import asyncio
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from random import randrange
from urllib.parse import urlsplit

from msgspec.structs import replace
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

from swarm_protocol.codec import UndecodableError, decode_from_server, encode
from swarm_protocol.messages import (
    Completion,
    Hello,
    NodeMessage,
    PublishRollouts,
    RequestRollouts,
    Rollout,
    RolloutsSampled,
    SeasonInfo,
    TaskSpec,
    Welcome,
)
from swarm_protocol.version import CLIENT_VERSION, PROTOCOL_VERSION
from swarm_tasks.keyspace import Part, keyed_index
from swarm_tasks.verifier import Verifier

PLANTED = "zqz "
# Longer than a frame may be, and shorter than the server's limit for received messages.
GIANT_BYTES = (1 << 20) + 1
# Rollouts of 128 kB and more, in one frame of less than 1 MiB.
HUGE_CHARS = 16_000
BURST = 16
SHARED = 8
# Pauses between expensive messages. They still exceed the site's limits on a slow machine.
HELLOS = 10
REST_S = 0.25
FLOOD_REST_S = 0.05
ASK_REST_S = 0.02
SOCKETS = 60
# Sizes as on the Internet; both are larger between two ends on one machine.
SEGMENT_BYTES, BUFFER_BYTES = 1_400, 16_384
LINGER_S = 2.0
CROWD_REST_S = 6.0


@dataclass
class Attacker:
    """A connection of a hostile node that was welcomed."""

    socket: ClientConnection
    season: SeasonInfo
    mark: str
    verifier: Verifier
    numbers: "count[int]" = field(default_factory=lambda: count(randrange(1 << 40)))

    async def send_message(self, message: NodeMessage) -> None:
        """Send a message, and discard received messages."""
        await self.socket.send(encode(message))
        await self.skim()

    async def skim(self) -> None:
        """Discard received messages."""
        with suppress(TimeoutError):
            async with asyncio.timeout(0.005):
                while True:
                    await self.socket.recv()

    def name(self) -> str:
        """Return an id that was not used before."""
        return f"h{next(self.numbers)}"

    def spec(self, part: Part = Part.TRAINING) -> TaskSpec:
        """Return a task of the season."""
        choice = self.season.tasks[0]
        return TaskSpec(
            dataset=choice.dataset,
            config=choice.config,
            seed=self.season.seed,
            index=keyed_index(
                key=b"hostile", part=part, dataset=choice.dataset, counter=next(self.numbers)
            ),
            generator=self.season.generator,
        )

    def drawn(self) -> TaskSpec:
        """Return a task drawn like a client's: its question is not one of the judge's."""
        choice = self.season.tasks[0]
        return self.verifier.draw(
            key=b"hostile",
            part=Part.TRAINING,
            dataset=choice.dataset,
            config=choice.config,
            seed=self.season.seed,
            counter=next(self.numbers),
        ).spec

    def rollout(self, texts: Sequence[str], *, task: TaskSpec | None = None) -> Rollout:
        """Return a rollout with these completions."""
        return Rollout(
            id=self.name(),
            task=task or self.spec(),
            completions=[Completion(text=text, finish_reason="stop") for text in texts],
            model="hostile",
            step=next(self.numbers) % 1000,
            tokenizer="hostile",
        )

    async def publish(self, rollouts: Sequence[Rollout]) -> None:
        """Publish rollouts, and declare all of them informative."""
        ids = [rollout.id for rollout in rollouts]
        message = PublishRollouts(id=self.name(), rollouts=list(rollouts), informative=ids)
        await self.send_message(message)


# ---- the attacks, repeated


async def garble(node: Attacker) -> None:
    """Send invalid and oversized frames until the site closes the connection."""
    whole = encode(RequestRollouts(id="x", count=4))
    broken: list[str] = [
        "",
        "{",
        "[]",
        "null",
        whole[:-3],
        whole.replace("4", '"4"'),
        '{"type":"no_such"}',
    ]
    broken += ["[" * 5_000, '{"a":' * 2_000, "\ud7ff\u0000"]
    for frame in [*broken, "x" * GIANT_BYTES]:
        await node.socket.send(frame)
        await node.skim()
    await node.socket.send(b"\x00\xff")
    await node.publish([node.rollout(["a" * HUGE_CHARS] * 8) for _ in range(4)])
    await asyncio.sleep(REST_S)
    await node.socket.send('{"type":"hello","protocol":99}')
    await node.socket.wait_closed()


async def flood(node: Attacker) -> None:
    """Send hellos and publish identical or nearly identical rollouts as fast as possible."""
    task = node.spec()
    first = node.rollout(["<answer>1</answer>"] * 4, task=task)
    for turn in range(BURST):
        alike = [node.rollout([f"<answer>1</answer>{n}"] * 4, task=task) for n in range(8)]
        await node.publish([first] * 8 if turn % 2 else alike)
        for _ in range(HELLOS):
            await node.socket.send(encode(introduce(node.name())))
        await asyncio.sleep(FLOOD_REST_S)


async def copy(node: Attacker) -> None:
    """Publish others' rollouts as its own, half of them with a text inserted in every answer."""
    asked = node.name()
    await node.socket.send(encode(RequestRollouts(id=asked, count=32)))
    drawn: list[Rollout] = []
    with suppress(TimeoutError):
        async with asyncio.timeout(5):
            while not drawn:
                with suppress(UndecodableError):
                    heard = decode_from_server(await node.socket.recv())
                    if heard.reply_to == asked:
                        drawn = _read(heard)
                        break
    planted = [
        replace(
            rollout,
            id=node.name(),
            completions=[replace(each, text=PLANTED + each.text) for each in rollout.completions],
        )
        for rollout in drawn[::2]
    ]
    await node.publish([*drawn[1::2], *planted])
    await asyncio.sleep(REST_S)


def _read(message: object) -> list[Rollout]:
    if not isinstance(message, RolloutsSampled):
        return []
    return [external.rollout for external in message.rollouts]


async def execute(node: Attacker) -> None:
    """Publish answers that run code, or never end, if they are evaluated."""
    mark = f"__import__('pathlib').Path({node.mark!r}).touch()"
    texts = [
        *(f"<answer>{mark}</answer>", "<answer>9**9**9**9</answer>", "<answer>1</answer>"),
        *(f"<answer>{'(' * 400}</answer>", f"<answer>{'9' * 450}</answer>"),
        *("<answer>[[]]*10**10</answer>", "<answer>Integer(10)**Integer(10)**10</answer>"),
        "<answer>while True: pass</answer>",
    ]
    most = node.season.completions
    parts = [texts[first : first + most] for first in range(0, len(texts), most)]
    rollouts = [node.rollout(parts[turn % len(parts)], task=node.drawn()) for turn in range(SHARED)]
    await node.publish(rollouts)
    await asyncio.sleep(REST_S)


async def stray(node: Attacker) -> None:
    """Publish rollouts of tasks that do not belong to the season, or belong to the judge."""
    right = node.spec()
    specs = [
        replace(right, seed=right.seed + 1),
        node.spec(Part.JUDGE),
        replace(right, dataset="countdown"),
        replace(right, config={**right.config, "max_terms": 9}),
        replace(right, generator="reasoning-gym 9"),
        replace(right, config={"no_such": 1}),
    ]
    await node.publish([node.rollout(["<answer>1</answer>"] * 4, task=task) for task in specs])
    await asyncio.sleep(REST_S)


async def sleep(node: Attacker) -> None:
    """Request much and read nothing, continue when the buffers are full, and then hang up."""
    node.socket.transport.pause_reading()
    for _ in range(300):
        await node.socket.send(encode(RequestRollouts(id=node.name(), count=64)))
        await asyncio.sleep(ASK_REST_S)
    node.socket.transport.abort()


ATTACKS: dict[str, Callable[[Attacker], Awaitable[None]]] = {
    "garbler": garble,
    "flooder": flood,
    "copier": copy,
    "executor": execute,
    "stranger": stray,
    "sleeper": sleep,
}


# ---- connections


def _open(url: str, token: str) -> connect:
    """Connect as over a slow link, so that unread data soon fills the site's buffers."""
    address = urlsplit(url)
    narrow = socket.socket()
    narrow.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, SEGMENT_BYTES)
    narrow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
    narrow.connect((address.hostname, address.port))
    narrow.setblocking(False)
    return connect(
        url,
        sock=narrow,
        additional_headers={"Authorization": f"Bearer {token}"},
        compression=None,
        ping_interval=None,
        max_size=None,
        open_timeout=60,
    )


def introduce(message_id: str) -> Hello:
    """Return a hello."""
    return Hello(
        id=message_id,
        protocol=PROTOCOL_VERSION,
        client=CLIENT_VERSION,
        model="hostile",
        tokenizer="hostile",
        arm="swarm",
    )


@asynccontextmanager
async def entered(url: str, token: str, mark: str, verifier: Verifier) -> AsyncIterator[Attacker]:
    """Connect a hostile node and say hello."""
    async with _open(url, token) as socket:
        await socket.send(encode(introduce("hello")))
        welcome = decode_from_server(await socket.recv())
        assert isinstance(welcome, Welcome), welcome
        assert welcome.season is not None
        yield Attacker(socket, welcome.season, mark, verifier)


async def attack(
    url: str,
    token: str,
    mark: str,
    verifier: Verifier,
    *,
    act: Callable[[Attacker], Awaitable[None]],
) -> None:
    """Attack, and reconnect whenever the site closes the connection."""
    while True:
        with suppress(OSError, WebSocketException, TimeoutError, AssertionError):
            async with entered(url, token, mark, verifier) as node:
                while True:
                    await act(node)
        await asyncio.sleep(REST_S)


async def crowd(url: str, token: str) -> None:
    """Open many connections concurrently, every other one with a wrong token, and send nothing."""
    while True:
        sockets = (_linger(url, token if n % 2 else f"{token}{n}") for n in range(SOCKETS))
        await asyncio.gather(*sockets)
        await asyncio.sleep(CROWD_REST_S)


async def _linger(url: str, token: str) -> None:
    with suppress(OSError, WebSocketException, TimeoutError):
        async with _open(url, token):
            await asyncio.sleep(LINGER_S)


async def main(url: str, tokens: Sequence[str], mark: str) -> None:
    """Run all attacks until cancelled."""
    with Verifier() as verifier:
        async with asyncio.TaskGroup() as group:
            for token, act in zip(tokens, ATTACKS.values(), strict=True):
                group.create_task(attack(url, token, mark, verifier, act=act))
            # Each ends the sleeper's own connection, because a node has only one.
            group.create_task(crowd(url, tokens[-1]))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]).read_text().split(), sys.argv[3]))
