"""PoolWindow: bounds, fairness between parties, duplicates and expiry."""

from random import Random

import msgspec
import pytest

from swarm_web.relay.window import Outcome, Strategy
from tests.relay.hubs import make_rollout, with_logprobs
from tests.relay.windows import draw, entry, fill, held, key, make_window


def test_added_entries_can_be_drawn() -> None:
    window = make_window()
    fill(window, 1, range(3))
    assert held(window) == {key(1, 0), key(1, 1), key(1, 2)}
    assert len(window) == 3


@pytest.mark.parametrize("strategy", Strategy)
def test_empty_window_draws_nothing(strategy: Strategy) -> None:
    assert draw(make_window(), 4, strategy=strategy) == []


def test_repeated_id_of_a_node_is_a_duplicate() -> None:
    window = make_window()
    fill(window, 1, range(1))
    assert window.add(entry(1, 0), now=0) is Outcome.DUPLICATE
    assert window.add(entry(2, 0), now=0) is Outcome.ADDED


# Random completions, which no other rollout has.
TEXTS = [f"{Random(number).getrandbits(1200):0300x}" for number in range(8)]


def test_equal_content_of_any_node_is_a_duplicate() -> None:
    window = make_window()
    fill(window, 1, range(1), task=b"task", texts=TEXTS)
    assert window.add(entry(2, 7, task=b"task", texts=TEXTS), now=0) is Outcome.DUPLICATE


def test_earlier_original_replaces_its_copy() -> None:
    window = make_window()
    fill(window, 1, range(1), now=1.5, task=b"task", texts=TEXTS)
    original = entry(2, 0, at=1.0, task=b"task", texts=TEXTS)
    assert window.add(original, now=2) is Outcome.ADDED
    assert held(window, now=2) == {original.key}
    again = entry(1, 1, at=1.5, task=b"task", texts=TEXTS)
    assert window.add(again, now=2) is Outcome.DUPLICATE


def test_copy_does_not_replace_the_original_when_the_clock_is_set_back() -> None:
    window = make_window()
    fill(window, 1, range(1), now=5, task=b"task", texts=TEXTS)
    assert window.add(entry(2, 0, at=3, task=b"task", texts=TEXTS), now=3) is Outcome.DUPLICATE


def test_earlier_copy_of_the_same_party_does_not_replace_an_entry() -> None:
    window = make_window()
    fill(window, 1, range(1), now=1.5, task=b"task", texts=TEXTS)
    earlier = entry(1, 1, at=1.0, task=b"task", texts=TEXTS)
    assert window.add(earlier, now=2) is Outcome.DUPLICATE


def test_content_of_an_evicted_entry_can_be_added_again() -> None:
    window = make_window(per_node=1)
    fill(window, 1, range(1), task=b"task", texts=TEXTS)
    fill(window, 1, range(1, 2))
    assert window.add(entry(1, 0, task=b"task", texts=TEXTS), now=0) is Outcome.ADDED


def test_node_over_its_bound_loses_its_oldest_entries() -> None:
    window = make_window(per_node=2)
    fill(window, 1, range(2), party="owner 1")
    fill(window, 2, range(4), party="owner 1")
    assert held(window) == {key(1, 0), key(1, 1), key(2, 2), key(2, 3)}


def test_party_over_its_bound_loses_its_oldest_entries() -> None:
    window = make_window(per_party=3)
    fill(window, 1, range(3))
    for node in range(2, 6):
        fill(window, node, range(1), party="owner 1")
    assert held(window) == {key(1, 0), key(1, 1), key(1, 2), key(3, 0), key(4, 0), key(5, 0)}


def test_task_over_its_bound_loses_the_oldest_entries_of_the_largest_party() -> None:
    window = make_window(per_task=4)
    fill(window, 1, range(2), dataset="chess")
    fill(window, 2, range(5), dataset="gcd")
    fill(window, 2, range(10, 14), dataset="chess")
    assert held(window) == {
        *(key(1, number) for number in (0, 1)),
        *(key(2, number) for number in (1, 2, 3, 4, 12, 13)),
    }


def test_full_window_loses_the_oldest_entries_of_the_largest_party() -> None:
    window = make_window(size=6)
    fill(window, 1, range(2))
    fill(window, 2, range(20))
    assert held(window) == {key(1, 0), key(1, 1), *(key(2, number) for number in range(16, 20))}


def test_party_with_large_bodies_loses_its_own_entries() -> None:
    window = make_window(body_bytes=1000)
    fill(window, 1, range(20), body=b"x" * 10)
    fill(window, 2, range(5), body=b"x" * 300)
    assert held(window) == {key(1, i) for i in range(20)} | {key(2, 3), key(2, 4)}
    assert window.bytes_held == 800


def test_large_body_evicts_as_many_entries_as_needed() -> None:
    window = make_window(body_bytes=1000)
    fill(window, 1, range(10), body=b"x" * 90)
    fill(window, 2, range(1), body=b"x" * 300)
    assert held(window) == {key(2, 0), *(key(1, number) for number in range(3, 10))}


def test_body_larger_than_the_window_evicts_no_other_entry() -> None:
    window = make_window(body_bytes=1000)
    fill(window, 1, range(3), body=b"x" * 300)
    window.add(entry(2, 0, body=b"x" * 1001), now=0)
    assert held(window) == {key(1, 0), key(1, 1), key(1, 2)}


def test_expired_entry_is_not_drawn() -> None:
    window = make_window(max_age_s=600)
    fill(window, 1, range(1), now=0)
    fill(window, 2, range(1), now=300)
    assert held(window, now=600) == {key(1, 0), key(2, 0)}
    assert held(window, now=601) == {key(2, 0)}


def test_expired_entry_is_not_added() -> None:
    window = make_window(max_age_s=600)
    assert window.add(entry(1, 0, at=0), now=601) is Outcome.TOO_OLD
    assert len(window) == 0


def test_time_in_the_future_is_replaced_by_now() -> None:
    window = make_window(max_age_s=600)
    window.add(entry(1, 0, at=500), now=0)
    assert held(window, now=601) == set()


def test_entries_expire_when_the_clock_is_set_back() -> None:
    window = make_window(max_age_s=600)
    fill(window, 1, range(1), now=100_000)
    fill(window, 2, range(1), now=0)
    assert held(window, now=0) == {key(2, 0)}


def test_forget_node_removes_all_its_entries() -> None:
    window = make_window()
    fill(window, 1, range(3), informative=True)
    fill(window, 2, range(2), body=b"body")
    window.forget_node(1)
    window.forget_node(1)
    assert held(window) == {key(2, 0), key(2, 1)}
    assert (len(window), window.bytes_held) == (2, 8)
    fill(window, 1, range(3))


@pytest.mark.parametrize("strategy", Strategy)
def test_draw_excludes_the_own_party_and_given_entries(strategy: Strategy) -> None:
    window = make_window()
    for node in range(4):
        fill(window, node, range(10), party=f"owner {node // 2}", informative=node == 0)
    delivered: set[str] = set()
    random = Random(1)
    while drawn := draw(
        window, 3, strategy=strategy, excluding="owner 1", delivered=delivered, random=random
    ):
        assert {each.party for each in drawn} == {"owner 0"}
        assert not delivered & {each.key for each in drawn}
        delivered |= {each.key for each in drawn}
    assert delivered == {key(node, number) for node in (0, 1) for number in range(10)}


@pytest.mark.parametrize("strategy", Strategy)
def test_entries_with_weight_zero_are_not_drawn(strategy: Strategy) -> None:
    window = make_window()
    fill(window, 1, range(5), informative=True)
    fill(window, 2, range(5))
    drawn = draw(window, 10, strategy=strategy, weights={1: 0.0})
    assert {each.key for each in drawn} == {key(2, number) for number in range(5)}


def test_checks_are_declared_entries_then_doubted_then_arbitrary_ones() -> None:
    window = make_window()
    for node, informative in [(1, True), (2, True), (3, False)]:
        fill(window, node, range(4), informative=informative)
    drawn = window.draw_checks(declared=2, arbitrary=3, doubted={2}, now=0, random=Random(0))
    assert len({each.key for each in drawn}) == 7
    assert [each.node_id for each in drawn[:4]] == [1, 1, 2, 2]
    rest = window.draw_checks(declared=8, arbitrary=8, doubted={2}, now=0, random=Random(0))
    assert {each.key for each in rest} == held(window)


def test_body_without_log_probs_is_created_once() -> None:
    window = make_window()
    body = msgspec.json.encode(with_logprobs(make_rollout("a")))
    full = entry(1, 1, body=body)
    window.add(full, now=0)
    assert window.body_without_logprobs(full) == msgspec.json.encode(make_rollout("a"))
    assert window.body_without_logprobs(full) is window.body_without_logprobs(full)
