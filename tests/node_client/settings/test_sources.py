from pathlib import Path

import pytest

from node_client.errors import SettingsError
from node_client.settings.fields import Setting
from node_client.settings.sources import (
    convert_text,
    read_environment,
    read_file,
    read_flags,
    unknown_variables,
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "swarm-node.toml"


def test_text_is_converted_to_the_type_of_its_setting() -> None:
    layer = read_environment(
        {
            "SWARM_STEPS": " 7 ",
            "SWARM_TOP_P": ".5",
            "SWARM_PLAIN": "True",
            "SWARM_REWARD": "partial",
            "SWARM_TOKEN_FILE": "~/token",
            "SWARM_LOCAL": "none",
            "SWARM_MODEL": "",
        }
    )
    assert {name: given.value for name, given in layer.items()} == {
        "steps": 7,
        "top_p": 0.5,
        "plain": True,
        "reward": "partial",
        "token_file": Path.home() / "token",
        "local": None,
    }


def test_list_is_separated_by_commas() -> None:
    words = Setting("words", tuple[str, ...], (), "", secret=False)
    assert convert_text(words, "a, b,", place="--words") == ("a", "b")


def test_none_is_an_empty_list() -> None:
    assert read_flags({"datasets": "None"})["datasets"].value == ()


@pytest.mark.parametrize(
    ("name", "text", "allowed"),
    [
        ("num_generations", "1", "a whole number of at least 2"),
        ("num_generations", "many", "a whole number"),
        ("mix", "half", "season, auto or I/J such as 4/4"),
        ("learning_rate", "-1", "a number of at least 0"),
        ("learning_rate", "nan", "a number of at least 0"),
        ("epsilon", "inf", "a number of at least 0"),
        ("top_p", "1.5", "at most 1"),
        ("arm", "lone", "one of swarm, isolated, base"),
    ],
)
def test_wrong_value_is_refused_with_its_source_and_the_allowed_values(
    name: str, text: str, allowed: str
) -> None:
    flag, variable = f"--{name.replace('_', '-')}", f"SWARM_{name.upper()}"
    with pytest.raises(SettingsError, match=rf"{flag} is .*{text}.*{allowed}"):
        read_flags({name: text})
    with pytest.raises(SettingsError, match=rf"{variable} is .*{text}.*{allowed}"):
        read_environment({variable: text})


def test_empty_model_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"--model is '', .* the name or folder of a model"):
        read_flags({"model": " "})


@pytest.mark.parametrize(
    "line", ['steps = "7"', "steps = 0", "plain = 1", "reward = 'half'", "model = ''"]
)
def test_wrong_value_in_a_file_is_refused_with_file_and_key(file: Path, line: str) -> None:
    file.write_text(line)
    with pytest.raises(SettingsError, match=f"{file}: {line.split()[0]} is .* must be"):
        read_file(file)


def test_secret_is_not_repeated_in_the_error(file: Path) -> None:
    file.write_text("token = 1234567")
    with pytest.raises(SettingsError) as refusal:
        read_file(file)
    assert "1234567" not in refusal.value.message


def test_unknown_key_is_refused_with_the_nearest_name(file: Path) -> None:
    file.write_text("learning-rate = 1e-5")
    with pytest.raises(SettingsError, match=r"learning-rate is not a setting\. .*learning_rate\?"):
        read_file(file)


def test_missing_or_invalid_file_is_named(file: Path) -> None:
    with pytest.raises(SettingsError, match=str(file)):
        read_file(file)
    file.write_text("steps: 3")
    with pytest.raises(SettingsError, match=str(file)):
        read_file(file)


def test_relative_paths_in_a_file_start_from_its_folder(file: Path) -> None:
    file.write_text('token_file = "secrets/token"\nstate_dir = "/var/node"')
    layer = read_file(file)
    assert layer["token_file"].value == file.parent / "secrets" / "token"
    assert layer["state_dir"].value == Path("/var/node")


def test_model_folder_beside_a_file_is_found_from_any_folder(file: Path) -> None:
    (file.parent / "mine").mkdir()
    file.write_text('model = "mine"')
    assert read_file(file)["model"].value == str(file.parent / "mine")


@pytest.mark.parametrize("name", ["tiny", "someone/some-model"])
def test_model_name_in_a_file_stays_a_name(file: Path, name: str) -> None:
    (file.parent / "tiny").mkdir()
    file.write_text(f'model = "{name}"')
    assert read_file(file)["model"].value == name


def test_model_folder_in_a_file_may_begin_with_a_tilde(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = file.parent / "home"
    (home / "mine").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    file.write_text('model = "~/mine"')
    assert read_file(file)["model"].value == str(home / "mine")


def test_model_that_no_folder_can_have_as_its_name_stays_a_name(file: Path) -> None:
    name = "m" * 300
    file.write_text(f'model = "{name}"')
    assert read_file(file)["model"].value == name


def test_blank_variable_is_ignored() -> None:
    assert read_environment({"SWARM_MODEL": "  "}) == {}


def test_none_may_be_surrounded_by_spaces() -> None:
    assert read_environment({"SWARM_STEPS": " none "})["steps"].value is None


def test_unknown_variable_is_reported_with_the_nearest_name() -> None:
    environment = {"SWARM_LEARNIGN_RATE": "1", "SWARM_ARM": "swarm", "HOME": "/"}
    [warning] = unknown_variables(environment)
    assert "SWARM_LEARNIGN_RATE" in warning
    assert "SWARM_LEARNING_RATE?" in warning
