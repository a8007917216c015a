"""The nodes that use this process's pools, and the handover of their state between processes.

A node uses a season's pool in one process at a time. Redis records which one and since when: the
node's tenure. When a node connects, the new process claims it and asks the old process to release
it. The old process writes the list of rollouts given to the node and replies. So a node that
changes processes is never given a rollout twice, and a draw needs no communication. A reply that
takes longer than HANDOVER_S, as after a killed process, is merged when it arrives.
"""

import asyncio
import logging
from collections import defaultdict
from itertools import count
from typing import NamedTuple, cast
from weakref import WeakValueDictionary

import msgspec
import redis.asyncio

from swarm_web.core.bus import switchboard
from swarm_web.core.write_behind import STORE_ERRORS, WriteBehind
from swarm_web.nodes.models import Node
from swarm_web.relay.given import GivenList
from swarm_web.relay.keys import given_list_key, holders_key
from swarm_web.relay.season_pool import Member
from swarm_web.relay.tally import Part

logger = logging.getLogger(__name__)

HANDOVER_S = 0.5
# Many nodes change processes at once when a process stops.
ANSWER_PAUSE_S = 0.005
# A node reports the rollouts given on a lost connection within an hour.
_REMEMBERED_S = 3600
# A season may pause for a long time.
_HELD_S = 90 * 86_400
_LISTS_AT_ONCE = 64
# Followed by the name of the addressed process.
_ASK, _ANSWER = "bus.relay.ask.", "bus.relay.answer."

# KEYS: holders, list. ARGV: node, its new tenure, seconds to keep it.
_CLAIM = """
local tenure = redis.call('HGET', KEYS[1], ARGV[1])
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('EXPIRE', KEYS[1], ARGV[3])
return {tenure, redis.call('GET', KEYS[2])}
"""
# KEYS: holders, lists... ARGV: seconds to keep the lists, then (node, tenure, list)...
_LET_GO = """
for i = 2, #KEYS do
    local node, tenure, list = unpack(ARGV, 3 * i - 4, 3 * i - 2)
    if redis.call('HGET', KEYS[1], node) == tenure then redis.call('HDEL', KEYS[1], node) end
    if list ~= '' then redis.call('SET', KEYS[i], list, 'EX', ARGV[1]) end
end
"""


class Left(NamedTuple):
    """The state of a node that left, to be written; an empty list is not written."""

    tenure: str
    packed: bytes


class _Ask(msgspec.Struct, array_like=True):
    """A process asks for a node whose tenure it ended."""

    season_id: int
    node_id: int
    tenure: str
    asker: str


_asks = msgspec.json.Decoder(_Ask)
_answers = msgspec.json.Decoder(list[Part])


class Members:
    """The nodes that use the pools of one event loop; `process` is its unique name in the site."""

    def __init__(self, client: redis.asyncio.Redis, *, process: str) -> None:
        self._client = client
        self._process = process
        self._tenures = count()
        self._present: dict[Part, Member] = {}
        self._left: dict[Part, Left] = {}
        self._joining: WeakValueDictionary[Part, asyncio.Lock] = WeakValueDictionary()
        # By node: the new tenure, and the process that asks for the node.
        self._beginning: dict[Part, str] = {}
        self._postponed: dict[Part, _Ask] = {}
        self._awaited: dict[Part, asyncio.Future[None]] = {}
        self._asked: list[_Ask] = []
        self._late: set[asyncio.Task[None]] = set()
        self._claim = client.register_script(_CLAIM)
        self._let_go = client.register_script(_LET_GO)
        self._writing = asyncio.Lock()
        self._answering = WriteBehind(self._answer, pause_s=ANSWER_PAUSE_S, name="lists of nodes")

    async def listen(self) -> None:
        """Start listening to other processes."""
        await switchboard().listen(_ASK + self._process, self._hear_ask)
        await switchboard().listen(_ANSWER + self._process, self._hear_answer)

    async def close(self) -> None:
        """Stop, and write the remaining lists."""
        switchboard().forget(_ASK + self._process, self._hear_ask)
        switchboard().forget(_ANSWER + self._process, self._hear_answer)
        await self._answering.close()

    def is_anybody_in(self, season_id: int) -> bool:
        """Return whether any node uses the season's pool."""
        return any(part[0] == season_id for part in self._present)

    async def join(self, season_id: int, node: Node) -> Member:
        """Return a node's membership in a season, with the rollouts given to it in any process."""
        part = (season_id, node.pk)
        async with self._joining.setdefault(part, asyncio.Lock()):
            known = self._present.get(part)
            if known is None:
                tenure = self._beginning[part] = f"{self._process}.{next(self._tenures)}"
                try:
                    given = await self._fetch(part, tenure)
                finally:
                    del self._beginning[part]
                    if ask := self._postponed.pop(part, None):
                        # Delayed: a node that joins uses its membership at once.
                        asyncio.get_running_loop().call_soon(self._take_ask, ask)
                known = Member(node.pk, node.name, node.party, given, tenure)
                self._present[part] = known
            return known

    def leave(self, season_id: int, member: Member) -> bool:
        """Queue the node's list to be written; return False if the node has already left."""
        part = (season_id, member.node_id)
        if self._present.get(part) is not member:
            return False
        del self._present[part]
        member.left = True
        packed = member.given.pack() if member.given else b""
        self._left[part] = Left(member.tenure, packed)
        return True

    async def write(self) -> None:
        """Write the lists of the nodes that left."""
        async with self._writing:
            by_season: defaultdict[int, list[tuple[Part, Left]]] = defaultdict(list)
            for part, left in self._left.items():
                by_season[part[0]].append((part, left))
            for season_id, rows in by_season.items():
                for first in range(0, len(rows), _LISTS_AT_ONCE):
                    some = rows[first : first + _LISTS_AT_ONCE]
                    keys = [given_list_key(*part) for part, _ in some]
                    args = [field for (_, node), left in some for field in (node, *left)]
                    await self._let_go([holders_key(season_id), *keys], [_REMEMBERED_S, *args])
                    # Only now: a node may return or leave again while its list is written.
                    for part, left in some:
                        if self._left.get(part) is left:
                            del self._left[part]

    # ---- a node comes

    async def _fetch(self, part: Part, tenure: str) -> GivenList:
        """Claim a node, and return the list of rollouts that it was given."""
        left = self._left.get(part)
        given = _unpack(left.packed if left else b"")
        keys = [holders_key(part[0]), given_list_key(*part)]
        try:
            reply = await self._claim(keys, [part[1], tenure, _HELD_S])
            ended, packed = cast("tuple[bytes | None, bytes | None]", reply)
            if ended and not ended.startswith(self._process.encode()):
                packed = await self._ask(part, ended.decode())
        except (*STORE_ERRORS, UnicodeDecodeError):
            logger.warning("what node %s was given is not known", part[1], exc_info=True)
        else:
            given.merge(_unpack(packed or b""))
        return given

    async def _ask(self, part: Part, tenure: str) -> bytes | None:
        """Ask the node's previous process to release it, and return the list that it wrote."""
        answered = self._awaited[part] = asyncio.get_running_loop().create_future()
        ask = _Ask(*part, tenure, self._process)
        try:
            async with asyncio.timeout(HANDOVER_S):
                await self._client.publish(
                    _ASK + tenure.partition(".")[0], msgspec.json.encode(ask)
                )
                await answered
        except TimeoutError:
            logger.info("the previous process of node %s did not release it", part[1])
        finally:
            del self._awaited[part]
        return cast("bytes | None", await self._client.get(given_list_key(*part)))

    def _hear_answer(self, payload: str) -> None:
        for part in _answers.decode(payload):
            answered = self._awaited.get(part)
            if answered is None:
                task = asyncio.create_task(self._merge_late(part))
                self._late.add(task)
                task.add_done_callback(self._late.discard)
            elif not answered.done():
                answered.set_result(None)

    async def _merge_late(self, part: Part) -> None:
        try:
            packed = cast("bytes | None", await self._client.get(given_list_key(*part)))
        except STORE_ERRORS:
            logger.warning("what node %s was given is not known", part[1], exc_info=True)
            return
        if (member := self._present.get(part)) is not None:
            member.given.merge(_unpack(packed or b""))

    # ---- a node went to another process

    def _hear_ask(self, payload: str) -> None:
        self._take_ask(_asks.decode(payload))

    def _take_ask(self, ask: _Ask) -> None:
        part = (ask.season_id, ask.node_id)
        if self._beginning.get(part) == ask.tenure:
            self._postponed[part] = ask
            return
        member = self._present.get(part)
        # A later tenure: the node has already returned, and is requested under that tenure.
        if member is not None and member.tenure == ask.tenure:
            self.leave(ask.season_id, member)
        self._asked.append(ask)
        self._answering.wake()

    async def _answer(self) -> None:
        """Write the requested lists, and notify the processes that asked."""
        asked, self._asked = self._asked, []
        try:
            await self.write()
        except BaseException:
            self._asked = asked + self._asked
            raise
        by_asker: defaultdict[str, list[Part]] = defaultdict(list)
        for ask in asked:
            by_asker[ask.asker].append((ask.season_id, ask.node_id))
        for asker, parts in by_asker.items():
            await self._client.publish(_ANSWER + asker, msgspec.json.encode(parts))


def _unpack(packed: bytes) -> GivenList:
    """Return a list; an empty one if another version of the site wrote it in another format."""
    try:
        return GivenList.unpack(packed) if packed else GivenList()
    except msgspec.DecodeError:
        logger.warning("left out a list of a node that cannot be read", exc_info=True)
        return GivenList()
