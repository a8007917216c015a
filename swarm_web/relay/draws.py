"""How rollouts are drawn from a pool window: the probabilities in each of five strategies; no I/O.

**Open entries.** An entry is open to a node unless it belongs to the node or its party, was already
given to the node, was already picked in this draw, or belongs to a node with hand-out weight 0.
Entries are picked one at a time from those that are still open.

**The strategies.** Each strategy assigns each open entry a probability q; an entry of a node with
weight w is picked with a probability proportional to w · q:

- `any`: q is uniform over all open entries, as in SAPO.
- `informative`: q is uniform over the entries declared informative by nodes whose declarations
  count; if none is left, over all open entries.
- `by_node`: each party with open entries has the same total q, shared equally by its open entries.
- `by_task`: each dataset with open entries has the same total q, shared equally by its open
  entries.
- `fresh`: 4 entries are picked as with `any`, with replacement, and the youngest is drawn. Of n
  open entries with equal weights, the i-th youngest (from 0) is drawn with probability
  ((n-i)^4 - (n-i-1)^4) / n^4: half of the drawn entries are among the youngest sixth.

**The cost.** A pick tests random entries until one is open and accepted. An open entry is accepted
with a probability equal to its weight, or to MIN_WEIGHT if that is larger. If a share a of the n
entries is open and all weights are 1, a pick takes 1/a tests on average; other weights multiply
this by at most 1/MIN_WEIGHT. After n/8 misses (tests of entries that are not open), all entries
that are not open are removed, which takes n tests. So a draw of `count` entries takes O(count)
tests if a is above a constant, else at most O(count + n). If a is small, nearly all entries belong
to the node's party, were given to the node, or come from nodes with weight 0. Without entries of
weight 0, n is then at most a constant times (bound on the party's entries + number of rollouts
given to the node), whatever the size of the pool window.
"""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from random import Random
from typing import Generic, TypeVar

from swarm_web.relay.entries import Bag, Bags, Entry

Item = TypeVar("Item")

# Nonzero weights below this count as this, which bounds the number of tests of a pick.
MIN_WEIGHT = 1 / 32
_FRESH_CANDIDATES = 4


class Strategy(StrEnum):
    """The sampling strategy that a node requests."""

    ANY = "any"
    INFORMATIVE = "informative"
    BY_NODE = "by_node"
    BY_TASK = "by_task"
    FRESH = "fresh"


@dataclass(frozen=True, slots=True)
class Requester:
    """The node that draws.

    Its own entries, those of its `party`, and those with a key (`Entry.key`) in `delivered` are not
    drawn. Its own may be of another party, because a node may get an owner after it published them.
    `weights` are hand-out weights of nodes by id, in [0, 1]; missing nodes have weight 1, and
    entries of nodes with weight 0 are not drawn. `doubted` are the ids of nodes whose declarations
    do not count.
    """

    node_id: int
    party: str
    delivered: Container[str]
    weights: Mapping[int, float]
    doubted: Container[int]


class Choices(Generic[Item]):
    """Picks random items of a sequence, uniformly from those for which `is_open` is true.

    An item that is not open must never become open again. The module states the cost.
    """

    __slots__ = ("_is_open", "_items", "_misses")

    def __init__(self, items: Sequence[Item], is_open: Callable[[Item], bool]) -> None:
        self._items = items
        self._is_open = is_open
        self._misses = 0

    def pick(self, random: Random) -> Item | None:
        """Return a random item for which `is_open` is true, or None if there is none.

        The item can be picked again while it is open. A miss is a test of an item that is not open.
        After many misses, all items that are not open are removed. This depends only on the number
        of misses and not on which items were tested, so each open item stays equally likely.
        """
        while self._items:
            item = self._items[int(random.random() * len(self._items))]
            if self._is_open(item):
                return item
            self._misses += 1
            if self._misses > len(self._items) >> 3:
                self._items = [each for each in self._items if self._is_open(each)]
                self._misses = 0
        return None


class Drawing:
    """One draw for a node (`requester`); `picked` has the entries picked so far, in order."""

    def __init__(self, requester: Requester, *, random: Random) -> None:
        self.picked: dict[Entry, None] = {}
        self._requester = requester
        self._random = random

    def is_open(self, entry: Entry) -> bool:
        """Return whether the entry may be handed out to the requester and was not picked."""
        requester = self._requester
        return (
            entry.party != requester.party
            and entry.node_id != requester.node_id
            and entry.key not in requester.delivered
            and requester.weights.get(entry.node_id, 1.0) > 0
            and entry not in self.picked
        )

    def is_informative(self, entry: Entry) -> bool:
        """Return whether the entry is open (`is_open`) and its node's declarations count.

        The caller passes only entries that were declared informative.
        """
        return entry.node_id not in self._requester.doubted and self.is_open(entry)

    def accepts(self, entry: Entry) -> bool:
        """Return True with a probability of max(weight of the entry's node, MIN_WEIGHT)."""
        weight = self._requester.weights.get(entry.node_id, 1.0)
        return weight >= 1 or self._random.random() < max(weight, MIN_WEIGHT)

    def take(self, count: int, pick: Callable[[], Entry | None]) -> None:
        """Add results of `pick` to `picked`.

        Ends when `picked` has `count` entries, or when `pick` returns None.
        """
        while len(self.picked) < count and (entry := pick()) is not None:
            self.picked[entry] = None

    def among(self, choices: Choices[Entry]) -> Callable[[], Entry | None]:
        """Return a function that picks an entry of `choices` at random.

        The function picks only entries that pass the `is_open` test of `choices`, each with a
        probability proportional to its node's hand-out weight (weights below MIN_WEIGHT count as
        MIN_WEIGHT). It returns None if no entry passes.
        """

        def pick() -> Entry | None:
            while (entry := choices.pick(self._random)) is not None:
                if self.accepts(entry):
                    return entry
            return None

        return pick

    def among_bags(
        self, bags: Bags[str], exhausted_bags: Iterable[Bag]
    ) -> Callable[[], Entry | None]:
        """Return a function that picks a bag uniformly, then one of the open entries in the bag.

        A bag has the entries of one party, or of one dataset. An entry may be rejected because of
        its node's weight (`accepts`). The function then picks a bag again. `exhausted_bags` have no
        open entries and are not picked. The function returns None if no bag has an open entry.
        """
        exhausted = set(exhausted_bags)
        open_bags = Choices(bags.all_bags, lambda bag: bag not in exhausted)
        entries: dict[Bag, Choices[Entry]] = {}

        def pick() -> Entry | None:
            while (bag := open_bags.pick(self._random)) is not None:
                choices = entries.get(bag)
                if choices is None:
                    choices = entries[bag] = Choices(bag.entries, self.is_open)
                entry = choices.pick(self._random)
                if entry is None:
                    exhausted.add(bag)
                elif self.accepts(entry):
                    return entry
            return None

        return pick

    def youngest(self, pick: Callable[[], Entry | None]) -> Callable[[], Entry | None]:
        """Return a function that picks _FRESH_CANDIDATES entries and returns the youngest of them.

        The function returns None if `pick` finds no entry.
        """

        def pick_youngest() -> Entry | None:
            found = [entry for _ in range(_FRESH_CANDIDATES) if (entry := pick()) is not None]
            return max(found, key=lambda entry: entry.at, default=None)

        return pick_youngest
