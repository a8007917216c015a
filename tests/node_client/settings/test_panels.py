from node_client.settings.fields import all_settings
from node_client.settings.panels import panel_of, panels


def test_every_setting_has_exactly_one_heading() -> None:
    placed = [setting.name for group in panels().values() for setting in group]
    assert sorted(placed) == sorted(all_settings())


def test_panel_of_returns_the_heading_of_a_setting() -> None:
    assert panel_of(all_settings()["model"]) == "Run"
