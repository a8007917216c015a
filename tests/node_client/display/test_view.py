"""What a node's view forgets, and what it does not."""

from msgspec.structs import replace

from tests.node_client.fakes import toy_season
from tests.node_client.panel_views import full_view, totals

NEXT = replace(toy_season(), name="next")


def test_curve_is_cleared_for_a_new_season() -> None:
    view = full_view()
    assert view.curve
    view.clear_training()
    assert not view.curve


def test_totals_are_cleared_for_a_new_season() -> None:
    view = full_view()
    assert view.totals == totals()
    view.clear_training()
    assert view.totals is None


def test_score_is_cleared_when_its_season_ends() -> None:
    view = full_view()
    assert view.standing is not None
    view.show_season(None)
    assert view.standing is None


def test_rollouts_of_the_previous_season_are_not_counted_as_published() -> None:
    view = full_view()
    view.show_season(NEXT)
    assert view.published_before + view.published == 0
    view.published += 8
    assert view.published_before + view.published == 8


def test_changed_rules_of_the_same_season_do_not_clear_its_score() -> None:
    view = full_view()
    standing = view.standing
    view.show_season(replace(toy_season(), local=3))
    assert view.standing is standing is not None


def test_score_received_before_the_first_step_of_its_season_is_not_cleared() -> None:
    view = full_view()
    assert view.standing is not None
    standing = replace(view.standing, score=0.5)
    view.show_season(NEXT)
    view.show_standing(standing)
    view.clear_training()
    assert view.standing is standing
