"""Under which heading a setting stands in help, `config show` and `swarm-node.toml`."""

from node_client.settings.fields import Setting
from node_client.settings.train_config import TrainConfig

RUN = "Run"
TRAINING = "Training (names as in trl; what is not given follows the season)"


def panel_of(setting: Setting) -> str:
    """Return the heading of a setting."""
    return TRAINING if setting.model is TrainConfig else RUN
