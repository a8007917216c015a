from node_client.settings.fields import all_settings
from node_client.settings.panels import PANELS, panel_of, panels


def test_every_setting_has_exactly_one_heading() -> None:
    placed = [setting.name for group in panels().values() for setting in group]
    assert sorted(placed) == sorted(all_settings())


def test_every_name_under_a_heading_is_a_setting() -> None:
    named = [name for names in PANELS.values() for name in names]
    assert [name for name in named if name not in all_settings()] == []


def test_panel_of_returns_the_heading_of_a_setting() -> None:
    assert panel_of(all_settings()["model"]) == "Run"
