from datetime import timedelta

import pytest

from node_client.errors import SettingsError
from node_client.settings.hours import parse_duration


@pytest.mark.parametrize(
    ("text", "minutes"), [("90m", 90), ("2h", 120), ("1h30m", 90), ("1d", 1440), ("60s", 1)]
)
def test_duration_is_parsed(text: str, minutes: int) -> None:
    assert parse_duration(text, option="--for") == timedelta(minutes=minutes)


@pytest.mark.parametrize(
    "text", ["", "2", "0m", "-1h", "h", "2 hours", "9" * 12 + "d", "9" * 5000 + "d"]
)
def test_invalid_duration_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(SettingsError, match="--for") as refused:
        parse_duration(text, option="--for")
    assert "1h30m" in refused.value.fix
