"""What a node's view forgets."""

from tests.node_client.panel_views import full_view


def test_a_new_season_begins_its_own_curve() -> None:
    view = full_view()
    assert view.curve
    view.forget_scores()
    assert not view.curve
