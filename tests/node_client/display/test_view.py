"""What a node's view forgets."""

from msgspec.structs import replace

from tests.node_client.fakes import toy_season
from tests.node_client.panel_views import full_view, totals

NEXT = replace(toy_season(), name="next")


def test_a_new_season_begins_its_own_curve() -> None:
    view = full_view()
    assert view.curve
    view.clear_training()
    assert not view.curve


def test_totals_of_a_season_are_forgotten_with_it() -> None:
    view = full_view()
    assert view.totals == totals()
    view.clear_training()
    assert view.totals is None


def test_a_score_is_forgotten_when_its_season_ends() -> None:
    view = full_view()
    assert view.standing is not None
    view.show_season(None)
    assert view.standing is None


def test_rollouts_of_the_season_before_are_not_counted_as_published_in_this_one() -> None:
    view = full_view()
    view.show_season(NEXT)
    assert view.published_before + view.published == 0
    view.published += 8
    assert view.published_before + view.published == 8


def test_new_rules_of_the_same_season_leave_its_score() -> None:
    view = full_view()
    standing = view.standing
    view.show_season(replace(toy_season(), local=3))
    assert view.standing is standing is not None


def test_a_score_that_comes_before_the_first_step_of_its_season_stays() -> None:
    view = full_view()
    assert view.standing is not None
    standing = replace(view.standing, score=0.5)
    view.show_season(NEXT)
    view.show_standing(standing)
    view.clear_training()
    assert view.standing is standing
