"""Combines the settings of a run from all sources, and checks that they fit together."""

import os
from collections import ChainMap
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from node_client.errors import SettingsError
from node_client.settings.choices import Start, Tracker
from node_client.settings.fields import Setting, all_settings, settings_of
from node_client.settings.hours import parse_hours
from node_client.settings.objective import check_objective
from node_client.settings.run_config import RunConfig
from node_client.settings.sources import (
    GivenValue,
    Layer,
    Source,
    find_file,
    read_environment,
    read_file,
    read_flags,
    read_record_settings,
    resolve_model,
)
from node_client.settings.train_config import TrainConfig
from node_client.site import Site
from node_client.storage.state import StateDir
from swarm_protocol.messages import Arm


@dataclass(frozen=True, kw_only=True)
class Settings(RunConfig):
    """All settings of a run, checked. `site` is None for training without a coordinator."""

    state: StateDir
    site: Site | None = None
    start: Start = "auto"
    training: TrainConfig = field(default_factory=TrainConfig)


@dataclass(frozen=True)
class SettingChoices:
    """The value of each setting, from the source with the highest priority that gives one.

    `given` has the settings that a source gives; all other settings have their default.
    """

    site: Site | None
    state: StateDir
    given: Mapping[str, GivenValue]

    @property
    def coordinator(self) -> Site:
        """`site`, for commands that require a coordinator. Raises AssertionError if it is None."""
        assert self.site is not None
        return self.site

    @property
    def folders(self) -> list[StateDir]:
        """The state folders to which a command applies.

        If `site` or `state_dir` is given, only `state`. Otherwise, all default folders in which a
        node has joined a swarm or trained; if there are none, only `state`.
        """
        if self.site is not None or self.value("state_dir") is not None:
            return [self.state]
        return StateDir.of_user() or [self.state]

    def get(self, setting: Setting) -> GivenValue:
        """Return the value of a setting with its source."""
        return self.given.get(setting.name) or GivenValue(
            setting.default, Source.DEFAULT, "default"
        )

    def value(self, name: str) -> Any:
        """Return the value of the setting called `name`."""
        return self.get(all_settings()[name]).value

    def values(self, model: type) -> dict[str, Any]:
        """Return the values of all fields of `model`, RunConfig or TrainConfig, by name."""
        return {setting.name: self.value(setting.name) for setting in settings_of(model)}

    def resolve(self, *, arm: Arm, token: str = "", start: Start = "auto") -> Settings:
        """Return the settings of a run.

        `arm` is the node's arm, `token` its access token on the coordinator, and `start` says
        whether to resume from a checkpoint. Raises SettingsError for settings that are invalid or
        contradict each other, and for a tracker that is not installed.
        """
        if arm == "base":
            check_base(start, steps=self.value("steps"))
        check_tracker(self.value("report_to"))
        parse_hours(self.value("hours") or "0-24")
        run = {
            **self.values(RunConfig),
            "arm": arm,
            "token": token,
            "model": resolve_model(self.value("model")),
        }
        training = TrainConfig(**self.values(TrainConfig))
        check_objective(training)
        return Settings(**run, state=self.state, site=self.site, start=start, training=training)


def choose(
    site: Site | None,
    *,
    flags: Mapping[str, object],
    environment: Mapping[str, str] = os.environ,
    here: Path | None = None,
) -> SettingChoices:
    """Return the value of each setting from the first source that gives one.

    The sources are, in this order: the command line (`flags`, where None means that an option was
    not given), the environment, the settings file, and the record of the last run.

    The settings file is the one that the setting `config` names. Without this setting, it is
    swarm-node.toml in the folder `here`. If that file does not exist, it is swarm-node.toml in the
    state folder. A `here` of None means the current folder.

    Raises SettingsError if a file cannot be read, if a setting in it is unknown or not allowed
    there, or if a value is invalid.
    """
    given = ChainMap(read_flags(flags), read_environment(environment))
    folder = here or Path()
    file = find_file(_value(given, "config"), here=folder, state=None)
    if file is not None:
        given.maps.append(read_file(file))
    folder_of_state = _value(given, "state_dir")
    state = StateDir.default(site) if folder_of_state is None else StateDir(folder_of_state)
    if file is None and (file := find_file(None, here=folder, state=state.path)) is not None:
        given.maps.append(_read_file_of_state(file))
    given.maps.append(read_record_settings(state.load_for(site)))
    return SettingChoices(site=site, state=state, given=given)


def find_token(choices: SettingChoices) -> str:
    """Return the node's token, or an empty string if none is given.

    If both `token` and `token_file` are given, the one from the source with the higher priority is
    used. If both come from the command line, `token` is used; if both come from the environment or
    both from a file, `token_file` is used. Raises SettingsError if the token file cannot be read or
    is empty, or if the token has invalid characters.
    """
    direct, file = choices.given.get("token"), choices.given.get("token_file")
    token = str(direct.value) if direct is not None else ""
    if file is not None and file.value is not None and not _has_priority(direct, file):
        token = _read_token(file.value)
    token = token.strip()
    if not token.isascii() or not token.isprintable() or " " in token:
        raise SettingsError(
            "The token contains invalid characters.",
            fix="Copy it again, without quotes, spaces or line breaks.",
        )
    return token


def choose_start(*, resume: bool, fresh: bool) -> Start:
    """Return the start that --resume or --fresh selects, `auto` if neither is given.

    Raises SettingsError if both are given.
    """
    if resume and fresh:
        raise SettingsError(
            "A run cannot both resume from a checkpoint and start at step 1.",
            fix="Give --resume or --fresh, or neither to resume if there is a checkpoint.",
        )
    return "resume" if resume else "fresh" if fresh else "auto"


def check_base(start: Start, *, steps: int | None) -> None:
    """Check the options of a base node, which does not train.

    Raises SettingsError unless `start` is `auto` and `steps` is None.
    """
    if steps is not None:
        raise SettingsError(
            "A base node makes no steps, so --steps would never end it.",
            fix="Leave out --steps; Ctrl-C stops the node.",
        )
    if start != "auto":
        raise SettingsError(
            "A base node does not train, so it neither resumes nor starts at step 1.",
            fix=f"Leave out --{start}, or choose --arm swarm or --arm isolated.",
        )


def check_tracker(tracker: Tracker) -> None:
    """Raise SettingsError if a tracker is not installed. The tracker is not imported."""
    if tracker != "none" and find_spec(tracker) is None:
        raise SettingsError(
            f"Metrics should go to {tracker}, which is not installed.",
            fix=f"pip install {tracker}, or leave out --report-to.",
        )


def check_offline_arm(arm: Arm) -> None:
    """Raise SettingsError for the arm `base`, which has nothing to do without a coordinator."""
    if arm == "base":
        raise SettingsError(
            "A base node never trains, so it has nothing to do offline.",
            fix="Leave out --arm (and SWARM_ARM), or use `join URL --arm base`.",
        )


def _value(layer: Mapping[str, GivenValue], name: str) -> Any:
    given = layer.get(name)
    return None if given is None else given.value


def _has_priority(direct: GivenValue | None, file: GivenValue) -> bool:
    if direct is None or direct.source is file.source:
        return direct is not None and direct.source is Source.FLAG
    order = list(Source)
    return order.index(direct.source) < order.index(file.source)


def _read_file_of_state(file: Path) -> Layer:
    layer = read_file(file)
    if "state_dir" in layer:
        raise SettingsError(
            f"{file}: state_dir cannot be set in the folder that it chooses.",
            fix="Set it in the current folder's swarm-node.toml, SWARM_STATE_DIR or --state-dir.",
        )
    return layer


def _read_token(path: Path) -> str:
    try:
        token = path.read_text().strip()
    except (OSError, UnicodeDecodeError) as problem:
        raise SettingsError(
            f"The token file {path} cannot be read: {problem}.",
            fix="Check the path and its permissions.",
        ) from problem
    if not token:
        raise SettingsError(
            f"The token file {path} is empty.", fix="Write the node's token into it."
        )
    return token
