import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta

from node_client.settings.fields import Setting, all_settings, settings_of
from node_client.settings.ranges import Count, Share


@dataclass(frozen=True)
class Example:
    count: Count | None = None
    """How many
    there are."""

    words: tuple[str, ...] = ()
    silent: bool = False


def setting(annotation: Any) -> Setting:
    return Setting("a_name", annotation, None, "", secret=False)


def test_docstring_below_a_field_is_its_help() -> None:
    assert [each.help for each in settings_of(Example)] == ["How many there are.", "", ""]


def test_every_setting_has_help() -> None:
    assert [name for name, each in all_settings().items() if not each.help] == []


def test_flag_and_variable_are_derived_from_the_setting_name() -> None:
    assert (setting(int).flag, setting(int).variable) == ("--a-name", "SWARM_A_NAME")


@pytest.mark.parametrize(
    ("annotation", "allowed", "placeholder"),
    [
        (int, "a whole number", "INT"),
        (Count | None, "a whole number of at least 1, or none", "INT"),
        (Share, "a number of at least 0 and at most 1", "FLOAT"),
        (Annotated[float, Meta(gt=0)], "a number of more than 0", "FLOAT"),
        (Literal["group", "none"], "one of group, none", "group|none"),
        (Literal["a_long_word", "another"] | None, "one of a_long_word, another, or none", "WORD"),
        (tuple[str, ...], "a list (text each)", "A,B,…"),
        (Path | None, "a path, or none", "PATH"),
        (bool, "true or false", "TEXT"),
        (str, "text", "TEXT"),
    ],
)
def test_allowed_values_are_described_in_words(
    annotation: Any, allowed: str, placeholder: str
) -> None:
    assert (setting(annotation).allowed, setting(annotation).placeholder) == (allowed, placeholder)


def test_help_is_read_from_a_module_in_a_zip_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = "import dataclasses\n@dataclasses.dataclass\nclass M:\n    x: int = 1\n    'An x.'\n"
    with zipfile.ZipFile(tmp_path / "packed.zip", "w") as packed:
        packed.writestr("zipped_settings.py", source)
    monkeypatch.syspath_prepend(str(tmp_path / "packed.zip"))
    import zipped_settings  # type: ignore[import-not-found]

    assert [each.help for each in settings_of(zipped_settings.M)] == ["An x."]
