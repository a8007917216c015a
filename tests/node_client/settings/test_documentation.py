from pathlib import Path

from node_client.settings.fields import settings_of
from node_client.settings.run_config import RunConfig
from node_client.settings.train_config import TrainConfig

DOCS = Path(__file__).parents[3] / "docs"


def test_client_page_lists_every_run_setting_with_its_help() -> None:
    page = (DOCS / "client.md").read_text()
    for setting in settings_of(RunConfig):
        default = "none" if setting.default in (None, "", ()) else f"`{setting.default}`"
        default = "false" if setting.default is False else default
        assert f"| `{setting.name}` | {default} | {setting.help} |" in page


def test_training_page_lists_every_trainer_setting() -> None:
    table = (DOCS / "training.md").read_text()
    names = [setting.name for setting in settings_of(TrainConfig) if setting.name != "arm"]
    assert [name for name in names if f"`{name}`" not in table] == []
