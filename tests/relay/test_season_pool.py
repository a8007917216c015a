"""SeasonPool: publishing, drawing and reporting in the memory of one process."""

from random import Random
from typing import Any

import msgspec
import pytest

from swarm_protocol.messages import Completion, Rollout
from swarm_web.relay.delivered import REMEMBERED
from swarm_web.relay.intake import SampleLimits, SampleQuota
from swarm_web.relay.season_pool import EncodedRollout, Member, RelayedRollout, SeasonPool
from swarm_web.relay.tally import POINT_EVERY_S, Pair, Tally
from swarm_web.relay.window import Bounds, Strategy
from tests.relay.hubs import NOW, draw, make_rollout, publish, report, with_logprobs

SEASON = 5
LIMITS = SampleLimits(site=20, node=4)


@pytest.fixture
def tally() -> Tally:
    return Tally()


@pytest.fixture
def pool(tally: Tally) -> SeasonPool:
    bounds = Bounds(
        size=100, per_node=100, per_party=100, per_task=100, body_bytes=1 << 26, max_age_s=600
    )
    return SeasonPool(SEASON, bounds=bounds, quota=SampleQuota(LIMITS), tally=tally)


def member(node_id: int, *, party: str | None = None) -> Member:
    return Member(node_id, f"n{node_id}", party or f"node {node_id}")


def offer(pool: SeasonPool, giver: Member, *rollouts: Rollout, rejected: int = 0) -> list[str]:
    """Publish rollouts and return the ids of those that are copies."""
    offered = [EncodedRollout(each, msgspec.json.encode(each)) for each in rollouts]
    return pool.publish(
        giver, offered, informative=(), rejected=rejected, now=NOW, random=Random(0)
    )


def take(pool: SeasonPool, taker: Member, **wanted: Any) -> list[RelayedRollout]:
    known: dict[str, Any] = {"with_logprobs": False, "max_bytes": 1 << 20}
    return pool.draw(
        taker, 64, strategy=Strategy.ANY, now=NOW, random=Random(0), **{**known, **wanted}
    )


def varied(name: str, *, seed: int = 0) -> Rollout:
    """Return a rollout whose completions differ from each other and from all others."""
    random = Random(seed)
    texts = [" ".join(str(random.getrandbits(40)) for _ in range(60)) for _ in range(4)]
    rollout = make_rollout(name)
    completions = [Completion(text, "stop") for text in texts]
    return msgspec.structs.replace(rollout, completions=completions)


def test_published_delivered_and_rejected_rollouts_are_counted(
    pool: SeasonPool, tally: Tally
) -> None:
    giver, taker = member(1), member(2)
    offer(pool, giver, make_rollout("a"), make_rollout("b"), rejected=3)
    assert draw(pool, taker) == ["n1/a", "n1/b"]
    gave, took = tally.change((SEASON, 1)), tally.change((SEASON, 2))
    assert (gave.published, gave.rejected, took.delivered) == (2, 3, 2)
    assert tally.deliveries == {(SEASON, 1): 2}


def test_repeated_id_is_neither_new_nor_a_copy(pool: SeasonPool, tally: Tally) -> None:
    giver = member(1)
    assert offer(pool, giver, varied("a")) == []
    assert offer(pool, giver, varied("a")) == []
    assert len(pool.take_outgoing()) == 1
    change = tally.change((SEASON, 1))
    assert (change.published, change.rejected) == (1, 0)


def test_copy_with_another_id_is_reported_and_counted_as_rejected(
    pool: SeasonPool, tally: Tally
) -> None:
    giver, copier = member(1), member(2)
    offer(pool, giver, varied("a"))
    assert offer(pool, copier, varied("b"), varied("c", seed=1)) == ["b"]
    change = tally.change((SEASON, 2))
    assert (change.published, change.rejected) == (1, 1)
    assert [entry.key for entry in pool.take_outgoing()] == ["n1/a", "n2/c"]


def test_nodes_of_one_party_do_not_get_each_others_rollouts(pool: SeasonPool) -> None:
    publish(pool, member(1, party="owner 1"), "a")
    assert draw(pool, member(2, party="owner 1")) == []
    assert draw(pool, member(3)) == ["n1/a"]


def test_node_that_gets_an_owner_does_not_get_its_own_rollouts(pool: SeasonPool) -> None:
    claimed = member(1)
    publish(pool, claimed, "a")
    publish(pool, member(2), "a")
    claimed.party = "owner 1"
    assert draw(pool, claimed) == ["n2/a"]


def test_encoded_draw_fits_into_the_frame(pool: SeasonPool) -> None:
    giver = Member(1, "n" * 64, "node 1")
    for number in range(40):
        publish(pool, giver, f"r{number}", text="x" * 1000)
    drawn = take(pool, member(2), max_bytes=50_000)
    size = len(msgspec.json.encode(drawn))
    assert 0.85 * 50_000 < size <= 50_000


def test_node_that_draws_the_whole_pool_gets_no_rollout_twice(tally: Tally) -> None:
    size = 8 * REMEMBERED
    bounds = Bounds(
        size=size, per_node=size, per_party=size, per_task=size, body_bytes=1 << 26, max_age_s=600
    )
    pool = SeasonPool(SEASON, bounds=bounds, quota=SampleQuota(LIMITS), tally=tally)
    publish(pool, member(1), *(str(number) for number in range(size)))
    taker, drawn = member(2), list[str]()
    while names := draw(pool, taker):
        drawn += names
        report(pool, taker, *names[::2])
        assert len(drawn) <= size
    assert len(set(drawn)) == len(drawn) == size


def test_small_rollout_is_drawn_after_large_ones_that_do_not_fit(
    pool: SeasonPool, tally: Tally
) -> None:
    giver, taker = member(1), member(2)
    large = [f"large{number}" for number in range(8)]
    publish(pool, giver, *large, text="x" * 5000)
    publish(pool, giver, "small")
    [drawn] = take(pool, taker, max_bytes=2000)
    assert msgspec.json.decode(drawn.rollout, type=Rollout).id == "small"
    assert tally.change((SEASON, 2)).delivered == 1
    assert draw(pool, taker) == [f"n1/{name}" for name in large]


def test_omitted_log_probs_do_not_count_towards_the_frame_size(pool: SeasonPool) -> None:
    bare = make_rollout("a")
    long = [msgspec.structs.replace(each, logprobs="A" * 4000) for each in bare.completions]
    full = [msgspec.structs.replace(bare, id=name, completions=long) for name in "abcd"]
    offer(pool, member(1), *full)
    assert len(take(pool, member(2), max_bytes=4000)) == 4


@pytest.mark.parametrize("requested", [True, False])
def test_log_probs_are_drawn_only_if_requested(pool: SeasonPool, requested: bool) -> None:
    bare = make_rollout("a")
    full = with_logprobs(bare)
    offer(pool, member(1), full)
    [drawn] = take(pool, member(2), with_logprobs=requested)
    assert msgspec.json.decode(drawn.rollout, type=Rollout) == (full if requested else bare)


def test_completion_text_that_looks_like_log_probs_is_unchanged(pool: SeasonPool) -> None:
    rollout = make_rollout("a", text='{"logprobs": "x", "logprob": 1}')
    offer(pool, member(1), rollout)
    [drawn] = take(pool, member(2))
    assert msgspec.json.decode(drawn.rollout, type=Rollout) == rollout


def test_report_credits_each_given_rollout_once(pool: SeasonPool, tally: Tally) -> None:
    giver, taker = member(1), member(2)
    publish(pool, giver, "a", "b")
    draw(pool, taker)
    for _ in range(2):
        report(pool, taker, "n1/a", "n1/a", "n1/made-up", "n9/b")
    minute = int(NOW) // 60 * 60
    assert tally.pairs == {Pair(SEASON, minute, 1, 2): 1}


def test_report_of_a_rollout_given_to_another_node_gives_no_credit(
    pool: SeasonPool, tally: Tally
) -> None:
    publish(pool, member(1), "a")
    assert draw(pool, member(2)) == ["n1/a"]
    report(pool, member(3), "n1/a")
    assert not tally.pairs
    assert not tally.lessons


def test_lessons_are_recorded_for_archive_samples_only(pool: SeasonPool, tally: Tally) -> None:
    giver, taker = member(1), member(2)
    names = [f"r{number}" for number in range(12)]
    publish(pool, giver, *names)
    sampled = {sample.rollout.id for sample in pool.take_samples()}
    assert len(sampled) == LIMITS.node
    report(pool, taker, *draw(pool, taker))
    assert {(each.giver_id, each.rollout_id, each.taker_id) for each in tally.lessons} == {
        (1, name, 2) for name in sampled
    }
    assert tally.pairs.total() == 12


def test_training_points_are_thinned_per_node(pool: SeasonPool, tally: Tally) -> None:
    one, two = member(1), member(2)
    for later in (0, POINT_EVERY_S - 1, POINT_EVERY_S):
        report(pool, one, step=int(later), now=NOW + later)
    report(pool, two)
    steps = [(point.season_node[1], point.report.step) for point in tally.points]
    assert steps == [(1, 0), (1, int(POINT_EVERY_S)), (2, 1)]


def test_report_between_two_training_points_updates_the_totals(
    pool: SeasonPool, tally: Tally
) -> None:
    report(pool, member(1), step=1)
    report(pool, member(1), step=2, now=NOW + POINT_EVERY_S - 1)
    assert [point.report.step for point in tally.points] == [1]
    assert tally.change((SEASON, 1)).step == 2


def test_earlier_rollouts_of_a_node_are_dropped_when_its_declarations_return(
    pool: SeasonPool,
) -> None:
    publish(pool, member(1), "a")
    publish(pool, member(2), "a")
    pool.apply_results(doubted=frozenset({1}), weights={})
    assert len(pool.window) == 2
    pool.apply_results(doubted=frozenset(), weights={})
    assert draw(pool, member(3)) == ["n2/a"]


def test_check_contains_the_node_and_the_rollout(pool: SeasonPool) -> None:
    publish(pool, member(1), "a", "b", informative=["b"])
    [check] = pool.choose_checks(declared=5, arbitrary=0, now=NOW, random=Random(0))
    assert (check.season_id, check.node_id, check.key) == (SEASON, 1, "n1/b")
    assert check.read_rollout() == make_rollout("b")


def test_times_of_old_training_points_are_forgotten(pool: SeasonPool, tally: Tally) -> None:
    for number in range(5000):
        report(pool, member(number), now=NOW + number)
        tally.take_changes()
    assert len(pool._point_times) <= 1024
    report(pool, member(4999), now=NOW + 5000)
    assert not tally.points


def test_pending_report_contains_no_list_of_rollouts(pool: SeasonPool, tally: Tally) -> None:
    report(pool, member(1), "amber/a")
    [change] = tally.changes.values()
    assert change.report is not None
    assert [change.report.used, tally.points[0].report.used] == [[], []]
