"""The pool in memory draws like the coordinator's: uniformly, recent rollouts of other nodes."""

from collections import Counter

import msgspec
import pytest
from scipy.stats import chisquare

from node_client.lab.config import Drawing, Source
from node_client.lab.pool import LabExchange, LabPool
from swarm_protocol.messages import Completion, ExternalRollout, Rollout, TaskSpec
from swarm_tasks.allowlist import GENERATOR


def rollout(name: str) -> Rollout:
    return Rollout(
        id=name,
        task=TaskSpec("chain_sum", {}, 7, 0, GENERATOR),
        completions=[Completion("1", "stop"), Completion("2", "stop")],
        model="toy",
        step=0,
        tokenizer="abc",
    )


def pool_of(
    shared: dict[str, list[str]],
    *,
    seed: int = 0,
    rounds: int = 1,
    drawing: Drawing = "uniform",
    source: Source = "others",
) -> LabPool:
    """Return a pool in its first round with these rollouts per node; `_` marks declared ones."""
    pool = LabPool(drawing=drawing, source=source, rounds=rounds, seed=seed)
    pool.begin_round(1)
    for node, names in shared.items():
        put(pool, node, *names)
    return pool


def put(pool: LabPool, node: str, *names: str) -> None:
    declared = [name for name in names if name.startswith("_")]
    pool.put(node, [rollout(name) for name in names], informative=declared)


def names_of(drawn: list[ExternalRollout]) -> list[str]:
    return [each.rollout.id for each in drawn]


def test_node_draws_rollouts_of_all_others_but_never_its_own() -> None:
    pool = pool_of({"a": ["a1", "a2"], "b": ["b1"], "c": ["c1"]})
    drawn = pool.draw("a", 10)
    assert sorted(names_of(drawn)) == ["b1", "c1"]
    assert {(each.node, each.rollout.id) for each in drawn} == {("b", "b1"), ("c", "c1")}


@pytest.mark.parametrize("drawing", ["uniform", "informative"])
@pytest.mark.parametrize("count", [0, 1, 3])
def test_draw_returns_no_more_than_requested_and_no_duplicates(
    drawing: Drawing, count: int
) -> None:
    pool = pool_of({"a": ["_a1", "a2", "a3"], "b": ["_b1", "b2"]}, drawing=drawing)
    assert len(set(names_of(pool.draw("c", count)))) == count


def test_all_rollouts_are_equally_likely_however_many_their_sender_published() -> None:
    shared = {"a": ["a1"], "b": ["b1", "b2", "b3", "b4"], "c": ["c1", "_c2"]}
    drawn: Counter[str] = Counter()
    for seed in range(4000):
        drawn.update(names_of(pool_of(shared, seed=seed).draw("d", 2)))
    assert len(drawn) == 7
    assert chisquare(list(drawn.values())).pvalue > 0.01


def test_declared_rollouts_are_drawn_first_and_equally_often_if_preferred() -> None:
    shared = {"a": ["a1", "_a2"], "b": ["_b1", "_b2", "b3"], "c": ["_c1"]}
    first: Counter[str] = Counter()
    rest: Counter[str] = Counter()
    for seed in range(4000):
        names = names_of(pool_of(shared, seed=seed, drawing="informative").draw("d", 5))
        assert set(names[:4]) == {"_a2", "_b1", "_b2", "_c1"}
        first[names[0]] += 1
        rest[names[4]] += 1
    assert chisquare(list(first.values())).pvalue > 0.01
    assert set(rest) == {"a1", "b3"}
    assert chisquare(list(rest.values())).pvalue > 0.01


def test_first_node_of_a_round_draws_from_the_previous_round_with_its_age() -> None:
    pool = pool_of({"a": ["a1"], "b": ["b1"]})
    pool.begin_round(2)
    put(pool, "a", "a2")
    assert {each.rollout.id: each.age_s for each in pool.draw("c", 9)} == {"a2": 0, "b1": 1}


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_pool_keeps_a_nodes_rollouts_of_the_given_number_of_rounds(rounds: int) -> None:
    pool = pool_of({"a": ["1"]}, rounds=rounds)
    for number in range(2, 7):
        pool.begin_round(number)
        put(pool, "a", str(number))
        assert sorted(map(int, names_of(pool.draw("b", 9)))) == list(
            range(max(1, number - rounds + 1), number + 1)
        )


@pytest.mark.parametrize("rounds", [1, 2])
def test_rollouts_of_a_node_that_stops_publishing_leave_the_pool(rounds: int) -> None:
    pool = pool_of({"a": ["a1"]}, rounds=rounds)
    pool.begin_round(1 + rounds)
    assert names_of(pool.draw("b", 9)) == ["a1"]
    pool.begin_round(2 + rounds)
    assert pool.draw("b", 9) == []


def test_self_replay_draws_own_rollouts_of_earlier_rounds_under_another_name() -> None:
    pool = pool_of({"a": ["a1"], "b": ["b1"]}, rounds=2, source="self")
    assert pool.draw("a", 9) == []
    pool.begin_round(2)
    put(pool, "a", "a2")
    [drawn] = pool.draw("a", 9)
    assert (drawn.rollout.id, drawn.age_s) == ("a1", 1)
    assert drawn.node != "a"


def test_draws_are_determined_by_seed_node_and_round() -> None:
    shared = {"a": [f"a{number}" for number in range(30)]}

    def drawn(*, seed: int = 1, node: str = "b", round_number: int = 1) -> tuple[str, ...]:
        pool = pool_of(shared, seed=seed)
        pool.begin_round(round_number)
        return tuple(names_of(pool.draw(node, 5)))

    assert drawn() == drawn()
    assert len({drawn(), drawn(seed=2), drawn(node="c"), drawn(round_number=2)}) == 4


def test_loaded_pool_continues_like_the_saved_one() -> None:
    pool = pool_of({"a": ["_a1", "a2", "a3"], "b": ["b1"]}, drawing="informative")
    loaded = LabPool(drawing="informative", rounds=1, seed=0)
    loaded.load(pool.state())
    for each in (pool, loaded):
        each.begin_round(2)
        put(each, "b", "_b2")
    assert loaded.draw("c", 3) == pool.draw("c", 3)
    assert loaded.state() == pool.state()


def test_link_counts_the_bytes_that_it_transfers() -> None:
    pool = pool_of({"a": ["a1", "a2"]})
    link = LabExchange(pool, "b")
    size = len(msgspec.json.encode(rollout("b1")))
    link.publish([rollout("b1")], informative=["b1"])
    assert len(link.fetch(2)) == 2
    assert (link.sent, link.received) == (size, 2 * size)
    assert names_of(pool.draw("a", 9)) == ["b1"]
