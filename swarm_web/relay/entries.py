"""A rollout in a pool window, and the sets used to draw and evict rollouts; no I/O.

Draws need an entry at a random index, and evictions need the oldest entry. A `Bag` gives both in
constant time.
"""

import heapq
from collections import OrderedDict
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec

from swarm_protocol.logprobs import without_logprobs
from swarm_protocol.messages import Rollout
from swarm_web.relay.likeness import Digests

Name = TypeVar("Name", bound=Hashable)

_LOGPROBS = b'"logprob'

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Rollout)


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """One rollout of the pool. Two entries are equal only if they are the same object.

    `key` is `<name of its node>/<id that the node gave it>`. `party` is the owner of node
    `node_id`, such as `owner 7` or, for a node without an account, `node 12`. `informative` is
    whether its node declared the rollout informative, and `archived` whether it was offered to the
    archive. `at` is the time of publication in Unix seconds. `body` is the rollout as canonical
    JSON, ready to be joined into a reply.
    """

    key: str
    node_id: int
    party: str
    dataset: str
    informative: bool
    archived: bool
    at: float
    body: bytes
    digests: Digests

    @property
    def node(self) -> str:
        """The name of the node that made the rollout."""
        return self.key.split("/", 1)[0]


def strip_logprobs(body: bytes) -> bytes:
    """Return a rollout's JSON without log-probs, for nodes that do not request them."""
    if _LOGPROBS not in body:
        return body
    return _encoder.encode(without_logprobs(_decoder.decode(body)))


class Bag:
    """A set of entries. `entries` lists them in no particular order.

    Adding an entry, removing one, and reading one by index or the oldest (the first added) each
    take O(1) time.
    """

    __slots__ = ("_indexes", "entries")

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._indexes: OrderedDict[Entry, int] = OrderedDict()

    def __len__(self) -> int:
        return len(self.entries)

    def add(self, entry: Entry) -> None:
        """Add an entry, which must not be in the bag yet."""
        self._indexes[entry] = len(self.entries)
        self.entries.append(entry)

    def remove(self, entry: Entry) -> None:
        """Remove an entry from the bag. The last entry in `entries` takes its place there."""
        index = self._indexes.pop(entry)
        last = self.entries.pop()
        if last is not entry:
            self.entries[index] = last
            self._indexes[last] = index

    def by_age(self) -> Iterator[Entry]:
        """Iterate over the entries, oldest first."""
        return iter(self._indexes)

    def oldest(self) -> Entry:
        """Return the entry that was added first; the bag must not be empty."""
        return next(iter(self._indexes))


class Bags(Generic[Name]):
    """Bags by name; a bag exists while it has entries. `all_bags` lists the bags, unordered."""

    __slots__ = ("_indexes", "_named", "all_bags")

    def __init__(self) -> None:
        self.all_bags: list[Bag] = []
        self._named: dict[Name, Bag] = {}
        self._indexes: dict[Bag, int] = {}

    def __getitem__(self, name: Name) -> Bag:
        return self._named[name]

    def get(self, name: Name) -> Bag | None:
        """Return the bag of this name, or None if it has no entries."""
        return self._named.get(name)

    def add(self, name: Name, entry: Entry) -> Bag:
        """Add an entry to the bag of this name, and return the bag."""
        bag = self._named.get(name)
        if bag is None:
            bag = self._named[name] = Bag()
            self._indexes[bag] = len(self.all_bags)
            self.all_bags.append(bag)
        bag.add(entry)
        return bag

    def remove(self, name: Name, entry: Entry) -> None:
        """Remove an entry from the bag of this name, which must contain it."""
        bag = self._named[name]
        bag.remove(entry)
        if bag.entries:
            return
        del self._named[name]
        index, last = self._indexes.pop(bag), self.all_bags.pop()
        if last is not bag:
            self.all_bags[index] = last
            self._indexes[last] = index


class NamedTotals(Generic[Name]):
    """The total of each name, and the name with the largest one; O(log n) amortised per change.

    A heap holds an upper bound for each name's total. A change pushes a new bound only if the total
    exceeds the name's old bound. A bound that is too high is corrected when it reaches the top.
    """

    __slots__ = ("_bounds", "_heap", "_totals")

    def __init__(self) -> None:
        self._totals: dict[Name, int] = {}
        self._bounds: dict[Name, int] = {}
        self._heap: list[tuple[int, Name]] = []

    def __len__(self) -> int:
        return len(self._totals)

    def change(self, name: Name, by: int) -> None:
        """Add `by` to the total of a name. The total must not become negative.

        A name whose total becomes 0 is removed.
        """
        total = self._totals.get(name, 0) + by
        if not total:
            self._totals.pop(name, None)
            self._bounds.pop(name, None)
            return
        self._totals[name] = total
        if total > self._bounds.get(name, 0):
            self._bounds[name] = total
            heapq.heappush(self._heap, (-total, name))
            if len(self._heap) > 2 * len(self._totals) + 64:
                self._rebuild()

    def largest(self) -> Name:
        """Return the name with the largest total; there must be at least one name."""
        while True:
            bound, name = self._heap[0]
            total = self._totals.get(name)
            if total == -bound:
                return name
            if total is None or self._bounds[name] != -bound:
                heapq.heappop(self._heap)
            else:
                self._bounds[name] = total
                heapq.heapreplace(self._heap, (-total, name))

    def _rebuild(self) -> None:
        self._bounds = dict(self._totals)
        self._heap = [(-total, name) for name, total in self._totals.items()]
        heapq.heapify(self._heap)
