"""Property tests: the window behaves as a simple model without indexes."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from swarm_web.relay.likeness import Digests
from swarm_web.relay.window import Bounds, Entry, Outcome, PoolWindow, Strategy
from tests.relay.windows import draw, entry

PARTIES = {1: "owner 1", 2: "owner 1", 3: "node 3", 4: "node 4"}

# Unit of the size of bodies, in bytes.
UNIT = 4000

BOUNDS = Bounds(size=12, per_node=4, per_party=6, per_task=7, body_bytes=40 * UNIT, max_age_s=20)


class Model:
    """The rules of the window, implemented over one list in insertion order."""

    def __init__(self) -> None:
        self.held: list[Entry] = []

    def expire(self, now: float) -> None:
        while self.held and abs(now - self.held[0].at) > BOUNDS.max_age_s:
            self._evict(self.held[0])

    def add(self, new: Entry, *, now: float) -> Outcome:
        self.expire(now)
        if new.at < now - BOUNDS.max_age_s:
            return Outcome.TOO_OLD
        content = new.digests.content
        if any(each.key == new.key for each in self.held):
            return Outcome.DUPLICATE
        for twin in [each for each in self.held if content and each.digests.content == content]:
            if twin.party == new.party or new.at >= min(twin.at, now):
                return Outcome.DUPLICATE
            self._evict(twin)
        self.held.append(replace(new, at=min(new.at, now)))
        self._bound(lambda each: each.node_id == new.node_id, BOUNDS.per_node)
        self._bound(lambda each: each.party == new.party, BOUNDS.per_party)
        task = [each for each in self.held if each.dataset == new.dataset]
        if len(task) > BOUNDS.per_task:
            self._evict(_oldest_of_largest(task, size=lambda _: 1))
        if len(self.held) > BOUNDS.size:
            self._evict(_oldest_of_largest(self.held, size=lambda _: 1))
        while sum(len(each.body) for each in self.held) > BOUNDS.body_bytes:
            largest = _oldest_of_largest(self.held, size=lambda each: len(each.body))
            self._evict(largest)
        return Outcome.ADDED

    def _bound(self, belongs: Callable[[Entry], bool], most: int) -> None:
        ours = [each for each in self.held if belongs(each)]
        if len(ours) > most:
            self._evict(ours[0])

    def _evict(self, gone: Entry) -> None:
        self.held = [each for each in self.held if each is not gone]


def _oldest_of_largest(entries: Sequence[Entry], *, size: Callable[[Entry], int]) -> Entry:
    shares: Counter[str] = Counter()
    for each in entries:
        shares[each.party] += size(each)
    largest = min(shares, key=lambda party: (-shares[party], party))
    return next(each for each in entries if each.party == largest)


def make_body(content: bytes) -> bytes:
    """Return a rollout with diverse completions if it has content, else with equal ones."""
    random = Random(content)
    texts = [f"{random.getrandbits(1200):0300x}" for _ in range(8)] if content else ["4"] * 8
    return msgspec.json.encode({"completions": [{"text": text} for text in texts]})


nodes = st.sampled_from(sorted(PARTIES))
entries = st.builds(
    lambda node, number, dataset, informative, size, content: entry(
        node,
        number,
        party=PARTIES[node],
        dataset=dataset,
        informative=informative,
        body=make_body(content).ljust(size * UNIT),
        digests=Digests(b"question", content),
    ),
    nodes,
    st.integers(0, 30),
    st.sampled_from(["gcd", "chess"]),
    st.booleans(),
    st.sampled_from([1, 1, 2, 9, 20, 41]),
    st.sampled_from([b"", b"", b"", b"one", b"two"]),
)
# Seconds before an event; clocks may be set back and differ from the sender's.
passing = st.sampled_from([0.0, 0.0, 1.0, 1.0, 5.0, 15.0, -3.0, -30.0])
events = st.lists(
    st.tuples(passing, st.one_of(st.tuples(entries, passing), nodes)), min_size=10, max_size=60
)


@settings(deadline=None, max_examples=150)
@given(events)
def test_window_has_the_same_entries_as_the_model(
    history: list[tuple[float, tuple[Entry, float] | int]],
) -> None:
    window, model, now = PoolWindow(BOUNDS), Model(), 1000.0
    for passed, what in history:
        now += passed
        if isinstance(what, int):
            window.forget_node(what)
            model.held = [each for each in model.held if each.node_id != what]
        else:
            new = replace(what[0], at=now + what[1])
            assert window.add(new, now=now) is model.add(new, now=now)
        assert len(window) == len(model.held)
        assert window.bytes_held == sum(len(each.body) for each in model.held)
    model.expire(now)
    drawn = draw(window, 1000, now=now)
    assert {(each.key, each.at) for each in drawn} == {(e.key, e.at) for e in model.held}


@settings(deadline=None, max_examples=150)
@given(
    st.lists(entries, min_size=1, max_size=30),
    st.sampled_from(Strategy),
    st.integers(0, 14),
    st.sampled_from(["owner 1", "node 3", "nobody"]),
    st.sets(st.tuples(nodes, st.integers(0, 30).map(lambda number: f"r{number}")), max_size=40),
    st.dictionaries(nodes, st.sampled_from([0.0, 1e-9, 0.3, 1.0])),
    st.sets(nodes),
    st.integers(0, 1000),
)
def test_draw_returns_as_many_allowed_entries_as_possible(
    added: list[Entry],
    strategy: Strategy,
    count: int,
    excluding: str,
    given_before: set[str],
    weights: dict[int, float],
    doubted: set[int],
    seed: int,
) -> None:
    window, model = PoolWindow(BOUNDS), Model()
    for new in added:
        window.add(new, now=0)
        model.add(new, now=0)
    allowed = {
        each.key: each.informative and each.node_id not in doubted
        for each in model.held
        if each.party != excluding
        and each.key not in given_before
        and weights.get(each.node_id, 1) > 0
    }
    drawn = draw(
        window,
        count,
        strategy=strategy,
        excluding=excluding,
        delivered=given_before,
        weights=weights,
        doubted=doubted,
        random=Random(seed),
    )
    assert len({each.key for each in drawn}) == len(drawn) == min(count, len(allowed))
    assert {each.key for each in drawn} <= set(allowed)
    if strategy is Strategy.INFORMATIVE:
        first = [allowed[each.key] for each in drawn]
        assert first == sorted(first, reverse=True)
        assert sum(first) == min(count, sum(allowed.values()))
