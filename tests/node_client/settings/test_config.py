from pathlib import Path

import pytest

from node_client.errors import SettingsError
from node_client.settings.config import choose_arm, choose_model, choose_token
from node_client.storage.state import Remembered


def test_an_option_beats_the_file_beats_the_environment_beats_memory(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("from-file\n")

    def choose(option: str | None, path: Path | None, environment: str | None) -> str:
        return choose_token(
            option=option, file=path, environment=environment, remembered="from-memory"
        )

    assert choose("from-option", file, "from-environment") == "from-option"
    assert choose(None, file, "from-environment") == "from-file"
    assert choose(None, None, "from-environment") == "from-environment"
    assert choose(None, None, None) == "from-memory"


def test_no_token_at_all_is_refused_and_says_where_to_put_one() -> None:
    with pytest.raises(SettingsError) as refusal:
        choose_token(option=None, file=None, environment=None, remembered="")
    assert "SWARM_TOKEN" in refusal.value.fix


@pytest.mark.parametrize("token", ["two words", "line\nbreak", "smart\u201dquote"])
def test_a_token_that_was_copied_badly_is_refused_without_repeating_it(token: str) -> None:
    with pytest.raises(SettingsError) as refusal:
        choose_token(option=token, file=None, environment=None, remembered="")
    assert token not in refusal.value.message


@pytest.mark.parametrize("content", [None, b"", b"\xff\xfe"])
def test_an_unusable_token_file_is_named(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "token"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(SettingsError, match=str(file)):
        choose_token(option=None, file=file, environment="other", remembered="")


def test_model_and_arm_are_as_asked_or_as_last_time_or_the_default() -> None:
    last_time = Remembered(model="small", arm="isolated")
    assert choose_model("other", last_time) == "other"
    assert choose_model(None, last_time) == "small"
    assert choose_model(None, Remembered()) == "tiny"
    assert choose_arm("swarm", last_time) == "swarm"
    assert choose_arm(None, last_time) == "isolated"
    assert choose_arm(None, Remembered()) == "swarm"
