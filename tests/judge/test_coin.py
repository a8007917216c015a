"""Assignment of arms by coin: flipped once, balanced within a model, and unpredictable."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from judge.models import CoinBlock, Enrolment, Season
from judge.selectors.seasons import coin_share
from judge.services.seasons import draw_arms, enrol
from swarm_web.nodes.models import Node
from tests.judge.crew import Crew
from tests.judge.toys import Site, make_toy_season

Assignment = Season.Assignment


@pytest.fixture
def coin(site: Site) -> Site:
    """A site whose season assigns arms by coin."""
    Season.objects.update(assignment=Assignment.COIN)
    site.season.refresh_from_db()
    return site


def make_nodes(count: int, **fields: Any) -> list[Node]:
    known = Node.objects.count()
    return Node.objects.bulk_create(
        Node(name=f"n{i}", token_hash=str(i), **{"model": "tiny", **fields})
        for i in range(known, known + count)
    )


def arms_of(nodes: list[Node], season: Season) -> list[str]:
    return [enrol(node, season, wish="swarm") for node in nodes]


# ---- flips


@pytest.mark.parametrize("wish", ["swarm", "isolated"])
def test_a_coin_ignores_the_owners_wish(coin: Site, wish: str) -> None:
    arms = [enrol(node, coin.season, wish=wish) for node in make_nodes(20)]
    assert set(arms) == {"swarm", "isolated"}
    assert set(Enrolment.objects.values_list("assignment", flat=True)) == {Assignment.COIN}


def test_a_coin_is_flipped_once(coin: Site) -> None:
    nodes = make_nodes(20)
    first = arms_of(nodes, coin.season)
    assert [arms_of(nodes, coin.season) for _ in range(3)] == 3 * [first]
    assert Enrolment.objects.count() == 20


def test_a_coin_is_not_flipped_again_after_the_node_was_in_the_base_arm(coin: Site) -> None:
    nodes = make_nodes(20)
    first = arms_of(nodes, coin.season)
    for node in nodes:
        assert enrol(node, coin.season, wish="base") == "base"
    assert arms_of(nodes, coin.season) == first


def test_a_changed_share_does_not_change_earlier_flips(coin: Site) -> None:
    nodes = make_nodes(20)
    first = arms_of(nodes, coin.season)
    coin.season.isolated_share = 0.05
    assert arms_of(nodes, coin.season) == first


def test_another_season_flips_another_coin(coin: Site) -> None:
    other = make_toy_season("Others")
    other.assignment = Assignment.COIN
    nodes = make_nodes(20)
    assert arms_of(nodes, coin.season) != arms_of(nodes, other)


# ---- blocks


def test_the_arms_of_a_model_stay_balanced(coin: Site) -> None:
    arms = arms_of(make_nodes(41), coin.season)
    for count in range(1, 42):
        # Half of the largest block.
        assert abs(2 * arms[:count].count("swarm") - count) <= 4


def test_each_model_has_its_own_blocks(coin: Site) -> None:
    tiny, large = make_nodes(9, model="tiny"), make_nodes(9, model="large")
    for pair in zip(tiny, large, strict=True):
        arms_of(list(pair), coin.season)
    for model in ("tiny", "large"):
        enrolled = Enrolment.objects.filter(node__model=model)
        assert {each.block.model for each in enrolled if each.block} == {model}


def test_an_enrolment_has_the_arm_of_its_place(coin: Site) -> None:
    arms_of(make_nodes(9), coin.season)
    for enrolment in Enrolment.objects.select_related("block"):
        assert enrolment.block is not None
        assert enrolment.block.arms[enrolment.place] == enrolment.arm


def test_the_nodes_of_one_owner_never_share_a_block(coin: Site) -> None:
    owner = User.objects.create(username="collector")
    nodes = [*make_nodes(2), *make_nodes(5, owner=owner), *make_nodes(2)]
    arms_of(nodes, coin.season)
    blocks = Enrolment.objects.filter(node__owner=owner).values_list("block", flat=True)
    assert len(set(blocks)) == 5


def test_nodes_of_other_owners_fill_the_blocks_that_an_owner_started(coin: Site) -> None:
    owner = User.objects.create(username="collector")
    arms_of(make_nodes(2, owner=owner), coin.season)
    arms_of(make_nodes(3), coin.season)
    assert list(CoinBlock.objects.order_by("pk").values_list("taken", flat=True)) == [4, 1]


@pytest.mark.slow
def test_nodes_that_join_concurrently_get_different_places(site: Site, crew: Crew) -> None:
    Season.objects.update(assignment=Assignment.COIN)
    site.season.refresh_from_db()
    waiting = iter(make_nodes(8))
    crew.run_concurrently(lambda: enrol(next(waiting), site.season, wish="swarm"), times=4)
    crew.run_concurrently(lambda: enrol(next(waiting), site.season, wish="swarm"), times=4)
    taken = sorted(Enrolment.objects.values_list("block", "place"))
    assert len(set(taken)) == 8
    for block in CoinBlock.objects.all():
        assert [place for pk, place in taken if pk == block.pk] == list(range(block.taken))


@pytest.mark.parametrize(("share", "isolated"), [(0.5, {3}), (0.25, {1, 2}), (0.05, {0, 1})])
def test_a_block_of_six_isolates_about_the_seasons_share(share: float, isolated: set[int]) -> None:
    blocks = [draw_arms(6, isolated_share=share) for _ in range(200)]
    assert {block.count("isolated") for block in blocks} == isolated


def test_a_fractional_number_of_places_is_rounded_at_random() -> None:
    isolated = sum(draw_arms(4, isolated_share=0.3).count("isolated") for _ in range(4_000))
    # Each block has one, and one more with a chance of .2: five standard errors.
    assert abs(isolated - 4_800) < 5 * (4_000 * 0.2 * 0.8) ** 0.5


# ---- untrained nodes, and counts


def test_an_untrained_node_is_in_no_arm_for_any_assignment(coin: Site) -> None:
    (node,) = coin.join("amber")
    assert enrol(node, coin.season, wish="base") == "base"
    enrolment = Enrolment.objects.get()
    assert (enrolment.arm, enrolment.assignment) == ("base", Assignment.CHOICE)


def test_a_season_that_switches_to_coins_flips_them_for_enrolled_nodes(site: Site) -> None:
    nodes = make_nodes(20)
    assert set(arms_of(nodes, site.season)) == {"swarm"}
    site.season.assignment = Assignment.COIN
    assert set(arms_of(nodes, site.season)) == {"swarm", "isolated"}


def test_the_share_of_nodes_that_a_coin_assigned_is_counted(coin: Site) -> None:
    amber, birch, bare = coin.join("amber", "birch", "bare")
    enrol(amber, coin.season, wish="swarm")
    enrol(bare, coin.season, wish="base")
    coin.season.assignment = Assignment.CHOICE
    enrol(birch, coin.season, wish="swarm")
    assert coin_share(coin.season) == (1, 2)


@pytest.mark.slow
def test_a_round_is_scored_in_the_arm_that_the_coin_drew(coin: Site) -> None:
    nodes = coin.join("amber", "birch")
    assigned = {node.name: enrol(node, coin.season, wish="swarm") for node in nodes}
    judge_round = coin.play(amber="rrrr", birch="rrrr")
    assert dict(judge_round.scores.values_list("node__name", "arm")) == assigned
