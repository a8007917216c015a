"""How rollouts are drawn from the window: five laws, all without bias; pure.

**Who is drawn from.** An entry is open to a node unless it is of the node's own party, was given to
it before, was drawn already, or is of a node whose hand-out weight is 0. Entries are picked one
after the other, each among those that are open then.

**The laws.** Each strategy is a chance q of each open entry; an entry of a node with weight w is
picked with a chance in proportion to w · q:

- `any`: q is equal for all. This is what SAPO does.
- `informative`: equal for all that are declared informative by nodes whose declarations count;
  when none is left, equal for all.
- `by_node`: parties with open entries have equal chances, and so have the open entries of one.
- `by_task`: the same with datasets instead of parties.
- `fresh`: the youngest of 4 entries, each picked as `any` does and possibly the same. Of n open
  ones with equal weights the i-th youngest (from 0) has the chance ((n-i)^4 - (n-i-1)^4) / n^4:
  half of what is drawn belongs to the youngest sixth.

**The cost.** A pick looks at random entries until it finds an open one that its weight lets pass.
If a share a of the n entries is open, that takes 1/a looks, and at most 1/LEAST_WEIGHT times as
many with weights. After n/8 misses the entries are filtered once, which takes n looks. So a draw
takes O(count) looks if a is above a constant, else at most O(count + n). Where a is small, nearly
all entries are the asker's own, were given to it, or come from nodes of weight 0; without the last,
n is at most a constant times the bound of a party and the number of rollouts that the asker was
given, however large the window may be.
"""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from random import Random
from typing import Generic, TypeVar

from swarm_web.relay.entries import Bag, Bags, Entry

Item = TypeVar("Item")

# Weights between 0 and this count as this, so that a pick takes a bounded number of looks.
LEAST_WEIGHT = 1 / 32
_FRESH_OF = 4


class Strategy(StrEnum):
    """Which law a node asks for."""

    ANY = "any"
    INFORMATIVE = "informative"
    BY_NODE = "by_node"
    BY_TASK = "by_task"
    FRESH = "fresh"


@dataclass(frozen=True, slots=True)
class Asker:
    """Who draws: its party, what it was given (`Entry.key`), and what it should know of nodes.

    `weights` are hand-out weights of nodes by id, in [0, 1]; a node that it lacks has 1. `doubted`
    are the ids of nodes whose declarations do not count.
    """

    party: str
    given: Container[str]
    weights: Mapping[int, float]
    doubted: Container[int]


class Choices(Generic[Item]):
    """Picks uniformly among those items of a sequence that are open; see the module's cost."""

    __slots__ = ("_is_open", "_items", "_misses")

    def __init__(self, items: Sequence[Item], is_open: Callable[[Item], bool]) -> None:
        self._items = items
        self._is_open = is_open
        self._misses = 0

    def pick(self, random: Random) -> Item | None:
        """Return an item that is open now, or None when there is none.

        Filtering keeps the law: whether it happens depends on the misses alone, not on the item
        that is found.
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
    """One draw: what has been picked so far, and what is still open."""

    def __init__(self, asker: Asker, *, random: Random) -> None:
        self.picked: dict[Entry, None] = {}
        self._asker = asker
        self._random = random

    def is_open(self, entry: Entry) -> bool:
        """Tell whether the entry may be handed out to the asker and was not picked."""
        asker = self._asker
        return (
            entry.party != asker.party
            and entry.key not in asker.given
            and asker.weights.get(entry.node_id, 1.0) > 0
            and entry not in self.picked
        )

    def is_informative(self, entry: Entry) -> bool:
        """Tell whether the entry is open, and the declarations of its node count."""
        return entry.node_id not in self._asker.doubted and self.is_open(entry)

    def passes(self, entry: Entry) -> bool:
        """Accept an entry with the probability of its node's weight."""
        weight = self._asker.weights.get(entry.node_id, 1.0)
        return weight >= 1 or self._random.random() < max(weight, LEAST_WEIGHT)

    def take(self, count: int, pick: Callable[[], Entry | None]) -> None:
        """Pick until `count` entries are picked in all or none is open."""
        while len(self.picked) < count and (entry := pick()) is not None:
            self.picked[entry] = None

    def among(self, choices: Choices[Entry]) -> Callable[[], Entry | None]:
        """Return a function that picks one of the choices by weight."""

        def pick() -> Entry | None:
            while (entry := choices.pick(self._random)) is not None:
                if self.passes(entry):
                    return entry
            return None

        return pick

    def among_groups(self, groups: Bags[str], closed: Iterable[Bag]) -> Callable[[], Entry | None]:
        """Return a function that picks a group first, then an entry in it, by weight.

        After an entry that its weight refuses, a group is picked again. `closed` are groups in
        which nothing is open.
        """
        over = set(closed)
        open_groups = Choices(groups.listed, lambda group: group not in over)
        entries: dict[Bag, Choices[Entry]] = {}

        def pick() -> Entry | None:
            while (group := open_groups.pick(self._random)) is not None:
                choices = entries.get(group)
                if choices is None:
                    choices = entries[group] = Choices(group.entries, self.is_open)
                entry = choices.pick(self._random)
                if entry is None:
                    over.add(group)
                elif self.passes(entry):
                    return entry
            return None

        return pick

    def youngest(self, pick: Callable[[], Entry | None]) -> Callable[[], Entry | None]:
        """Return a function that picks the youngest of a few that `pick` picks."""

        def pick_youngest() -> Entry | None:
            found = [entry for _ in range(_FRESH_OF) if (entry := pick()) is not None]
            return max(found, key=lambda entry: entry.at, default=None)

        return pick_youngest
