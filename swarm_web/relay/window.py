"""The pool window: the recent rollouts of a season, in the memory of one web process; no I/O.

Bounds keep it small and fair. If a new entry exceeds a bound, old entries are evicted:

- over the bound of a node or party: the oldest entry of this node or party
- over the bound of a dataset: in this dataset, the oldest entry of the party with the most entries
- over the window's bound of entries: the oldest entry of the party with the most entries
- over the window's bound of bytes: the oldest entry of the party with the most bytes

So a party that floods the window evicts only its own rollouts once it holds more than any other.

Times are Unix seconds. With n entries, adding takes O(log n) amortised, but an eviction over the
bound of a dataset may search all entries of a party. `relay.draws` states the probabilities and the
cost of drawing.
"""

from collections.abc import Container
from dataclasses import dataclass, replace
from enum import StrEnum
from random import Random

from swarm_web.relay.draws import Choices, Drawing, Requester, Strategy
from swarm_web.relay.entries import Bag, Bags, Entry, NamedTotals, strip_logprobs
from swarm_web.relay.likeness import Likeness, compute_body_likeness

__all__ = ["Bounds", "Entry", "Outcome", "PoolWindow", "Requester", "Strategy"]

# The number of rollouts of its party to the same question that a rollout is compared with.
_MAX_COMPARED = 8


class Outcome(StrEnum):
    """The result of adding an entry."""

    ADDED = "added"
    DUPLICATE = "duplicate"
    NEAR_DUPLICATE = "near_duplicate"
    TOO_OLD = "too_old"


@dataclass(frozen=True)
class Bounds:
    """Limits of a pool window: the number of rollouts, their bytes, and their age in seconds.

    `size` is the limit for all rollouts, and `per_task` that for each dataset. `body_bytes` limits
    the sum of the entries' bodies (rollouts as JSON). The window may also keep a copy of each body
    without log-probs; these copies are not counted, and may need as much memory again.
    """

    size: int
    per_node: int
    per_party: int
    per_task: int
    body_bytes: int
    max_age_s: float


class PoolWindow:
    """The rollouts of one season that this process can hand out.

    `bytes_held` is the sum of the sizes of their bodies (JSON). `key in window` says whether the
    window holds a rollout with this `Entry.key`.
    """

    def __init__(self, bounds: Bounds) -> None:
        self.bytes_held = 0
        self._bounds = bounds
        self._keys: dict[str, Entry] = {}
        self._contents: dict[bytes, Entry] = {}
        # Values derived from entries on first use.
        self._likenesses: dict[Entry, Likeness] = {}
        self._bare_bodies: dict[Entry, bytes] = {}
        self._all = Bag()
        self._declared = Bag()
        self._nodes: Bags[int] = Bags()
        self._parties: Bags[str] = Bags()
        self._tasks: Bags[str] = Bags()
        # By question and party: the entries to compare.
        self._by_question: dict[tuple[bytes, str], tuple[Entry, ...]] = {}
        self._counts: NamedTotals[str] = NamedTotals()
        self._bytes: NamedTotals[str] = NamedTotals()
        self._task_counts: dict[str, NamedTotals[str]] = {}

    def __len__(self) -> int:
        return len(self._all)

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def add(self, entry: Entry, *, now: float) -> Outcome:
        """Add an entry, and evict expired entries and entries over a bound; return the outcome.

        - DUPLICATE: not added, because the window holds a rollout with the same key, or a
          remembered rollout (`relay.likeness`) with the same task and completions.
        - NEAR_DUPLICATE: not added, because it is similar to one of the last _MAX_COMPARED rollouts
          of the same party for the same question.
        - TOO_OLD: not added, because it was published more than `max_age_s` ago.

        There is one exception to DUPLICATE. A copy may reach this process before its original. So
        `entry` replaces a remembered rollout with the same task and completions if that rollout is
        of another party and was published later than `entry`. It replaces none if `entry` was
        published at `now` or is a near-copy.

        A publication time after `now` can come from the clock of another process. It counts as
        `now`.
        """
        self.expire(now=now)
        if entry.at < now - self._bounds.max_age_s:
            return Outcome.TOO_OLD
        if entry.at > now:
            entry = replace(entry, at=now)
        twin = self._find_twin(entry)
        if entry.key in self._keys or (twin and not _is_copy(twin, entry, now=now)):
            return Outcome.DUPLICATE
        if self._is_near(entry):
            return Outcome.NEAR_DUPLICATE
        if twin:
            self._remove(twin)
        self._insert(entry)
        self._enforce_bounds(entry)
        return Outcome.ADDED

    def draw(
        self,
        count: int,
        requester: Requester,
        *,
        strategy: Strategy,
        now: float,
        random: Random,
    ) -> list[Entry]:
        """Draw up to `count` distinct entries by `strategy`; return them in the order of the picks.

        `relay.draws` states with which probabilities each strategy picks entries. Takes O(count)
        expected time, or O(count + n) if hardly any of the n entries may be handed out.
        """
        self.expire(now=now)
        drawing = Drawing(requester, random=random)
        if strategy is Strategy.INFORMATIVE:
            declared = Choices(self._declared.entries, drawing.is_informative)
            drawing.take(count, drawing.among(declared))
        if strategy is Strategy.BY_NODE:
            own = self._parties.get(requester.party)
            pick = drawing.among_bags(self._parties, [own] if own else [])
        elif strategy is Strategy.BY_TASK:
            pick = drawing.among_bags(self._tasks, [])
        else:
            pick = drawing.among(Choices(self._all.entries, drawing.is_open))
        drawing.take(count, drawing.youngest(pick) if strategy is Strategy.FRESH else pick)
        return list(drawing.picked)

    def draw_checks(
        self,
        *,
        declared: int,
        arbitrary: int,
        doubted: Container[int],
        now: float,
        random: Random,
    ) -> list[Entry]:
        """Draw distinct entries to check, uniformly, and return them.

        `doubted` are the ids of nodes whose declarations do not count. The entries come from three
        groups, in this order:

        - up to `declared` entries that other nodes declared informative
        - up to `declared` entries that nodes in `doubted` declared informative
        - up to `arbitrary` of all entries that are left

        Hand-out weights have no effect. The cost is that of `draw`.
        """
        self.expire(now=now)
        picked: dict[Entry, None] = {}
        for bag, count, is_doubted in (
            (self._declared, declared, False),
            (self._declared, declared, True),
            (self._all, arbitrary, None),
        ):

            def is_open(entry: Entry, is_doubted: bool | None = is_doubted) -> bool:
                matches = is_doubted is None or (entry.node_id in doubted) is is_doubted
                return matches and entry not in picked

            choices = Choices(bag.entries, is_open)
            for _ in range(count):
                if (entry := choices.pick(random)) is not None:
                    picked[entry] = None
        return list(picked)

    def forget_node(self, node_id: int) -> None:
        """Drop all entries of a node."""
        if bag := self._nodes.get(node_id):
            for entry in tuple(bag.entries):
                self._remove(entry)

    def body_without_logprobs(self, entry: Entry) -> bytes:
        """Return the body of a held entry without log-probs; cached while the entry is held."""
        body = self._bare_bodies.get(entry)
        if body is None:
            body = self._bare_bodies[entry] = strip_logprobs(entry.body)
        return body

    def _find_twin(self, entry: Entry) -> Entry | None:
        """Return the remembered rollout with the task and completions of `entry`, or None."""
        twin = self._contents.get(entry.digests.content)
        return twin if twin is not None and self._likeness_of(twin).is_remembered else None

    def _is_near(self, entry: Entry) -> bool:
        held = self._by_question.get((entry.digests.question, entry.party))
        if held is None:
            return False
        likeness = compute_body_likeness(entry.body)
        return any(likeness.is_near(self._likeness_of(each)) for each in held[-_MAX_COMPARED:])

    def _likeness_of(self, entry: Entry) -> Likeness:
        """Return the likeness of a held entry; it is cached while the entry is held."""
        found = self._likenesses.get(entry)
        if found is None:
            found = self._likenesses[entry] = compute_body_likeness(entry.body)
        return found

    def _enforce_bounds(self, entry: Entry) -> None:
        """Evict entries over a bound after an entry was added."""
        bounds = self._bounds
        node, party = self._nodes.get(entry.node_id), self._parties.get(entry.party)
        if node and len(node) > bounds.per_node:
            self._remove(node.oldest())
        if party and len(party) > bounds.per_party:
            self._remove(party.oldest())
        task = self._tasks.get(entry.dataset)
        if task and len(task) > bounds.per_task:
            largest = self._task_counts[entry.dataset].largest()
            self._remove(self._oldest(largest, dataset=entry.dataset))
        if len(self._all) > bounds.size:
            self._remove(self._oldest(self._counts.largest()))
        while self.bytes_held > bounds.body_bytes:
            self._remove(self._oldest(self._bytes.largest()))

    def _oldest(self, party: str, *, dataset: str | None = None) -> Entry:
        """Return a party's oldest entry, of `dataset` if given; such an entry must exist."""
        return next(
            entry
            for entry in self._parties[party].by_age()
            if dataset is None or entry.dataset == dataset
        )

    def expire(self, *, now: float) -> None:
        """Evict entries that were published more than `max_age_s` before or after `now`.

        An entry's publication time can be after `now` only if the clock has been set back. Entries
        are examined in the order in which they were added, up to the first one that stays.
        """
        oldest_at, newest_at = now - self._bounds.max_age_s, now + self._bounds.max_age_s
        while self._all.entries:
            entry = self._all.oldest()
            if oldest_at <= entry.at <= newest_at:
                return
            self._remove(entry)

    def _insert(self, entry: Entry) -> None:
        self._keys[entry.key] = entry
        self._contents.setdefault(entry.digests.content, entry)
        question_key = entry.digests.question, entry.party
        self._by_question[question_key] = (*self._by_question.get(question_key, ()), entry)
        self._all.add(entry)
        if entry.informative:
            self._declared.add(entry)
        self._nodes.add(entry.node_id, entry)
        self._parties.add(entry.party, entry)
        self._tasks.add(entry.dataset, entry)
        self._count(entry, by=1)

    def _remove(self, entry: Entry) -> None:
        del self._keys[entry.key]
        self._likenesses.pop(entry, None)
        self._bare_bodies.pop(entry, None)
        if self._contents.get(entry.digests.content) is entry:
            del self._contents[entry.digests.content]
        self._forget_question(entry)
        self._all.remove(entry)
        if entry.informative:
            self._declared.remove(entry)
        self._nodes.remove(entry.node_id, entry)
        self._parties.remove(entry.party, entry)
        self._tasks.remove(entry.dataset, entry)
        self._count(entry, by=-1)

    def _forget_question(self, entry: Entry) -> None:
        question_key = entry.digests.question, entry.party
        if left := tuple(each for each in self._by_question[question_key] if each is not entry):
            self._by_question[question_key] = left
        else:
            del self._by_question[question_key]

    def _count(self, entry: Entry, *, by: int) -> None:
        size = by * len(entry.body)
        self.bytes_held += size
        self._counts.change(entry.party, by)
        self._bytes.change(entry.party, size)
        totals = self._task_counts.get(entry.dataset)
        if totals is None:
            totals = self._task_counts[entry.dataset] = NamedTotals()
        totals.change(entry.party, by)
        if not totals:
            del self._task_counts[entry.dataset]


def _is_copy(held: Entry, entry: Entry, *, now: float) -> bool:
    """Return whether `held` is a copy of `entry`, which has the same task and completions.

    True if the two are of different parties and `entry` was published before `held`. But False if
    `entry` is published at `now`, because then `held` has a later time only if this machine's clock
    was set back.
    """
    return held.party != entry.party and entry.at < min(held.at, now)
