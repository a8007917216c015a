from pathlib import Path

import pytest

from node_client.errors import SettingsError
from node_client.settings.config import SettingChoices, choose, find_token
from node_client.settings.sources import GivenValue, Source
from node_client.site import Site
from node_client.storage.state import NodeRecord, StateDir

SITE = Site("https://swarm.example.org")


def choices_with(**given: GivenValue) -> SettingChoices:
    return SettingChoices(site=SITE, state=StateDir(Path("unused")), given=given)


def token(value: str, source: Source = Source.FLAG) -> GivenValue:
    return GivenValue(value, source, "a place")


def test_settings_precedence_is_flags_environment_file_remembered(tmp_path: Path) -> None:
    StateDir(tmp_path).save(
        NodeRecord(url=SITE.base, token="memory", model="memory", arm="isolated")
    )
    (tmp_path / "swarm-node.toml").write_text(
        'token = "file"\nmodel = "file"\ndevice = "cuda:7"\ntop_p = 0.5\n'
    )
    environment = {"SWARM_TOKEN": "env", "SWARM_MODEL": "env", "SWARM_STATE_DIR": str(tmp_path)}
    choices = choose(SITE, flags={"token": "flag"}, environment=environment, here=tmp_path / "no")
    settings = choices.resolve(arm=choices.value("arm"), token=find_token(choices))
    assert (settings.token, settings.model, settings.device) == ("flag", "env", "cuda:7")
    assert (settings.arm, settings.training.top_p) == ("isolated", 0.5)
    assert (settings.save_steps, settings.training.epsilon) == (50, 0.2)


def test_file_in_the_current_folder_replaces_the_one_in_the_state_folder(
    tmp_path: Path,
) -> None:
    state = tmp_path / "state"
    state.mkdir()
    (state / "swarm-node.toml").write_text("steps = 1")
    (tmp_path / "swarm-node.toml").write_text('state_dir = "state"')
    choices = choose(None, flags={}, environment={}, here=tmp_path)
    assert choices.state.path == state
    assert choices.value("steps") is None


def test_file_in_the_state_folder_cannot_set_state_dir(tmp_path: Path) -> None:
    (tmp_path / "swarm-node.toml").write_text('state_dir = "elsewhere"')
    with pytest.raises(SettingsError, match="state_dir cannot be set"):
        choose(None, flags={"state_dir": str(tmp_path)}, environment={}, here=tmp_path / "no")


def test_named_file_replaces_all_others(tmp_path: Path) -> None:
    (tmp_path / "swarm-node.toml").write_text("steps = 1")
    (tmp_path / "mine.toml").write_text("steps = 2")
    named = {"config": str(tmp_path / "mine.toml")}
    assert choose(None, flags=named, environment={}, here=tmp_path).value("steps") == 2


def test_state_folder_that_cannot_exist_is_named(tmp_path: Path) -> None:
    folder = str(tmp_path / ("s" * 300))
    with pytest.raises(SettingsError, match=folder):
        choose(None, flags={"state_dir": folder}, environment={}, here=tmp_path)


def test_none_resets_a_setting_of_the_file_to_that_of_the_season(tmp_path: Path) -> None:
    (tmp_path / "swarm-node.toml").write_text("local = 3")
    assert choose(None, flags={}, environment={}, here=tmp_path).value("local") == 3
    none = choose(None, flags={"local": "none"}, environment={}, here=tmp_path)
    assert none.value("local") is None


def test_stronger_source_decides_between_token_and_token_file(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("from-file\n")
    by_flag = GivenValue(path, Source.FLAG, "--token-file")
    by_variable = GivenValue(path, Source.ENVIRONMENT, "SWARM_TOKEN_FILE")
    from_environment = token("from-environment", Source.ENVIRONMENT)

    def chosen(**given: GivenValue) -> str:
        return find_token(choices_with(**given))

    assert chosen(token=token("from-flag"), token_file=by_flag) == "from-flag"
    assert chosen(token=from_environment, token_file=by_flag) == "from-file"
    assert chosen(token=from_environment, token_file=by_variable) == "from-file"
    assert chosen(token=token("t", Source.REMEMBERED), token_file=by_variable) == "from-file"
    assert chosen(token=from_environment) == "from-environment"


@pytest.mark.parametrize("text", ["two words", "line\nbreak", "smart\u201dquote"])
def test_malformed_token_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(SettingsError) as refusal:
        find_token(choices_with(token=token(text)))
    assert text not in refusal.value.message


@pytest.mark.parametrize("content", [None, b"", b"\xff\xfe"])
def test_unusable_token_file_is_named(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "token"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(SettingsError, match=str(file)):
        find_token(choices_with(token_file=GivenValue(file, Source.FLAG, "--token-file")))


def test_contradictory_loss_settings_are_refused_before_loading() -> None:
    level = GivenValue("sequence", Source.FLAG, "a place")
    with pytest.raises(SettingsError, match="mean over sequences"):
        choices_with(importance_sampling_level=level).resolve(arm="swarm")
