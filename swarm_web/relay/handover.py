"""The nodes that use this process's pools, and the handover of their lists between processes.

A node's list names the rollouts that the node was given, so that it is given none twice. A node
uses a season's pool in one process at a time, so a draw needs no communication. The period in which
a process serves a node is a *tenure*, named `<process>.<number>`. Redis has each node's current
tenure. When a node connects to another process, the new process writes its own tenure to Redis, and
asks the old process to release the node. The old process then writes the node's list to Redis and
replies. If no reply arrives within HANDOVER_S, for example because the old process was killed, the
node starts with the list that is in Redis, which may be incomplete. If the reply arrives later, the
list from the old process is merged then.
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
from swarm_web.relay.delivered import DeliveredList
from swarm_web.relay.keys import season_key
from swarm_web.relay.season_pool import Member
from swarm_web.relay.tally import SeasonNode

logger = logging.getLogger(__name__)

HANDOVER_S = 0.5
# Replies are collected for this long: many nodes change processes at once when a process stops.
REPLY_PAUSE_S = 0.005
# A node reports the rollouts given on a lost connection within an hour.
_LIST_EXPIRY_S = 3600
# A season may pause for a long time.
_TENURE_EXPIRY_S = 90 * 86_400
_LIST_BATCH = 64
# Followed by the name of the addressed process.
_REQUEST_TOPIC, _REPLY_TOPIC = "bus.relay.ask.", "bus.relay.answer."

# KEYS: holders, list. ARGV: node, its new tenure, seconds to keep it.
_CLAIM = """
local tenure = redis.call('HGET', KEYS[1], ARGV[1])
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('EXPIRE', KEYS[1], ARGV[3])
return {tenure, redis.call('GET', KEYS[2])}
"""
# KEYS: holders, lists... ARGV: seconds to keep the lists, then (node, tenure, list)...
_RELEASE = """
for i = 2, #KEYS do
    local node, tenure, list = unpack(ARGV, 3 * i - 4, 3 * i - 2)
    if redis.call('HGET', KEYS[1], node) == tenure then redis.call('HDEL', KEYS[1], node) end
    if list ~= '' then redis.call('SET', KEYS[i], list, 'EX', ARGV[1]) end
end
"""


class LeftState(NamedTuple):
    """The state of a node that left.

    `tenure` names the period that ended: `<process>.<number>` (see the module). `packed` is the
    encoded list of the rollouts that the node was given; b"" if the list is empty.
    """

    tenure: str
    packed: bytes


class _ReleaseRequest(msgspec.Struct, array_like=True):
    """A message from process `requester` to the process named in `tenure`: release the node."""

    season_id: int
    node_id: int
    tenure: str
    requester: str


_request_decoder = msgspec.json.Decoder(_ReleaseRequest)
_reply_decoder = msgspec.json.Decoder(list[SeasonNode])


class Members:
    """The nodes that use the pools of one event loop; a web process has one such loop.

    `process` is the unique name of the loop. The name contains no dot, because a period in which
    the loop serves a node (a *tenure*) has the name `<process>.<number>`.
    """

    def __init__(self, client: redis.asyncio.Redis, *, process: str) -> None:
        self._client = client
        self._process = process
        self._tenures = count()
        self._present: dict[SeasonNode, Member] = {}
        self._left: dict[SeasonNode, LeftState] = {}
        self._joining: WeakValueDictionary[SeasonNode, asyncio.Lock] = WeakValueDictionary()
        # The tenures under which nodes are joining, and requests for such nodes, which must wait.
        self._claiming: dict[SeasonNode, str] = {}
        self._postponed: dict[SeasonNode, _ReleaseRequest] = {}
        self._pending_replies: dict[SeasonNode, asyncio.Future[None]] = {}
        self._requests: list[_ReleaseRequest] = []
        self._late_merges: set[asyncio.Task[None]] = set()
        self._claim = client.register_script(_CLAIM)
        self._release = client.register_script(_RELEASE)
        self._writing = asyncio.Lock()
        self._replying = WriteBehind(
            self._send_replies, pause_s=REPLY_PAUSE_S, name="lists of nodes"
        )

    async def listen(self) -> None:
        """Start listening to the requests and replies of other processes."""
        await switchboard().listen(_REQUEST_TOPIC + self._process, self._on_request)
        await switchboard().listen(_REPLY_TOPIC + self._process, self._on_reply)

    async def close(self) -> None:
        """Stop exchanging lists with other processes, and write to Redis what `leave` queued."""
        switchboard().forget(_REQUEST_TOPIC + self._process, self._on_request)
        switchboard().forget(_REPLY_TOPIC + self._process, self._on_reply)
        await self._replying.close()

    def has_members(self, season_id: int) -> bool:
        """Return whether any node uses the season's pool in this process."""
        return any(season_node[0] == season_id for season_node in self._present)

    async def join(self, season_id: int, node: Node) -> Member:
        """Return a node's membership in a season, with the list of rollouts given to the node.

        If the node is still a member in another process, that process is asked to end the
        membership. If Redis or the other process does not reply in time, the list may lack rollouts
        that the other process gave.
        """
        season_node = (season_id, node.pk)
        async with self._joining.setdefault(season_node, asyncio.Lock()):
            member = self._present.get(season_node)
            if member is None:
                tenure = self._claiming[season_node] = f"{self._process}.{next(self._tenures)}"
                try:
                    delivered = await self._fetch(season_node, tenure)
                finally:
                    del self._claiming[season_node]
                    if request := self._postponed.pop(season_node, None):
                        # Delayed: a node that joins uses its membership at once.
                        asyncio.get_running_loop().call_soon(self._handle_request, request)
                member = Member(node.pk, node.name, node.party, delivered, tenure)
                self._present[season_node] = member
            return member

    def leave(self, season_id: int, member: Member) -> bool:
        """End a membership, queue its list for `write`, and return True.

        Does nothing and returns False if the membership has ended already.
        """
        season_node = (season_id, member.node_id)
        if self._present.get(season_node) is not member:
            return False
        del self._present[season_node]
        member.has_left = True
        packed = member.delivered.pack() if member.delivered else b""
        self._left[season_node] = LeftState(member.tenure, packed)
        return True

    async def write(self) -> None:
        """Write to Redis the lists of the nodes that left. Raises RedisError if this fails."""
        async with self._writing:
            by_season: defaultdict[int, list[tuple[SeasonNode, LeftState]]] = defaultdict(list)
            for season_node, left in self._left.items():
                by_season[season_node[0]].append((season_node, left))
            for season_id, rows in by_season.items():
                holders = season_key(season_id, "holders")
                for first in range(0, len(rows), _LIST_BATCH):
                    some = rows[first : first + _LIST_BATCH]
                    keys = [_list_key(season_node) for season_node, _ in some]
                    args = [field for (_, node), left in some for field in (node, *left)]
                    await self._release([holders, *keys], [_LIST_EXPIRY_S, *args])
                    # Only now: a node may return or leave again while its list is written.
                    for season_node, left in some:
                        if self._left.get(season_node) is left:
                            del self._left[season_node]

    # ---- a node comes

    async def _fetch(self, season_node: SeasonNode, tenure: str) -> DeliveredList:
        """Write a node's new tenure to Redis, and return the list of rollouts given to the node.

        If Redis fails, return the list that this process has not written yet, or an empty list.
        """
        left = self._left.get(season_node)
        delivered = _unpack(left.packed if left else b"")
        keys = [season_key(season_node[0], "holders"), _list_key(season_node)]
        try:
            reply = await self._claim(keys, [season_node[1], tenure, _TENURE_EXPIRY_S])
            ended, packed = cast("tuple[bytes | None, bytes | None]", reply)
            if ended and not ended.startswith(self._process.encode()):
                packed = await self._request_release(season_node, ended.decode())
        except (*STORE_ERRORS, UnicodeDecodeError):
            logger.warning(
                "could not read the rollouts that node %s received", season_node[1], exc_info=True
            )
        else:
            delivered.merge(_unpack(packed or b""))
        return delivered

    async def _request_release(self, season_node: SeasonNode, tenure: str) -> bytes | None:
        """Ask the process named in `tenure` to release the node; return the node's list from Redis.

        The packed list has the rollouts given to the node; it is None if Redis has none. Waits up
        to HANDOVER_S for the reply. Without a reply, the list may lack the latest rollouts.
        """
        reply = self._pending_replies[season_node] = asyncio.get_running_loop().create_future()
        request = _ReleaseRequest(*season_node, tenure, self._process)
        try:
            async with asyncio.timeout(HANDOVER_S):
                await self._client.publish(
                    _REQUEST_TOPIC + tenure.partition(".")[0], msgspec.json.encode(request)
                )
                await reply
        except TimeoutError:
            logger.info("the previous process of node %s did not release it", season_node[1])
        finally:
            del self._pending_replies[season_node]
        return cast("bytes | None", await self._client.get(_list_key(season_node)))

    def _on_reply(self, payload: str) -> None:
        for season_node in _reply_decoder.decode(payload):
            reply = self._pending_replies.get(season_node)
            if reply is None:
                task = asyncio.create_task(self._merge_late(season_node))
                self._late_merges.add(task)
                task.add_done_callback(self._late_merges.discard)
            elif not reply.done():
                reply.set_result(None)

    async def _merge_late(self, season_node: SeasonNode) -> None:
        try:
            packed = cast("bytes | None", await self._client.get(_list_key(season_node)))
        except STORE_ERRORS:
            logger.warning(
                "could not read the rollouts that node %s received", season_node[1], exc_info=True
            )
            return
        if (member := self._present.get(season_node)) is not None:
            member.delivered.merge(_unpack(packed or b""))

    # ---- a node went to another process

    def _on_request(self, payload: str) -> None:
        self._handle_request(_request_decoder.decode(payload))

    def _handle_request(self, request: _ReleaseRequest) -> None:
        season_node = (request.season_id, request.node_id)
        if self._claiming.get(season_node) == request.tenure:
            self._postponed[season_node] = request
            return
        member = self._present.get(season_node)
        # A later tenure: the node has already returned, and is requested under that tenure.
        if member is not None and member.tenure == request.tenure:
            self.leave(request.season_id, member)
        self._requests.append(request)
        self._replying.wake()

    async def _send_replies(self) -> None:
        """Write the rollout lists of nodes that left, and notify the requesting processes."""
        requests, self._requests = self._requests, []
        try:
            await self.write()
        except BaseException:
            self._requests = requests + self._requests
            raise
        by_requester: defaultdict[str, list[SeasonNode]] = defaultdict(list)
        for request in requests:
            by_requester[request.requester].append((request.season_id, request.node_id))
        for requester, season_nodes in by_requester.items():
            await self._client.publish(_REPLY_TOPIC + requester, msgspec.json.encode(season_nodes))


def _list_key(season_node: SeasonNode) -> str:
    season_id, node_id = season_node
    return season_key(season_id, f"list:{node_id}")


def _unpack(packed: bytes) -> DeliveredList:
    """Return the packed list; an empty list for no bytes or an unknown format."""
    try:
        return DeliveredList.unpack(packed) if packed else DeliveredList()
    except msgspec.DecodeError:
        logger.warning("ignored an unreadable list of a node's rollouts", exc_info=True)
        return DeliveredList()
