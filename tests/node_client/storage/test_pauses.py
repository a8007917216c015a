"""The file by which an owner requests a pause."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from node_client.storage.pauses import Pause, read_pause, request_pause
from node_client.storage.state import StateDir

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)


def test_pause_lasts_until_its_end(tmp_path: Path) -> None:
    state, end = StateDir(tmp_path), NOON + timedelta(hours=2)
    request_pause(state, now=NOON, until=end)
    assert read_pause(state, now=NOON) == Pause("asked", end)
    assert read_pause(state, now=end) is None


@pytest.mark.parametrize(
    "content",
    [
        "",
        "\x00",
        "{}",
        '{"asked_at": "", "until": "soon"}',
        # A time without a zone cannot be compared with the clock.
        '{"asked_at": "", "until": "2020-01-01T00:00:00"}',
    ],
)
def test_unreadable_pause_file_requests_a_pause_without_an_end(
    tmp_path: Path, content: str
) -> None:
    (tmp_path / "pause.json").write_text(content)
    assert read_pause(StateDir(tmp_path), now=NOON) == Pause("asked")
