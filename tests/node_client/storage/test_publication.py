from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from node_client.storage.manifest import Merit, MeritKind
from node_client.storage.publication import (
    Publication,
    is_better,
    is_rested,
    read_publication,
    write_publication,
)

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def published(value: float = 0.5) -> Publication:
    merit = Merit(kind="judge_score", season="one", value=value)
    return Publication(repository="me/model", step=10, merit=merit, at=NOON.isoformat())


@pytest.mark.parametrize(
    ("kind", "season", "value", "better"),
    [
        ("judge_score", "one", 0.6, True),
        ("judge_score", "one", 0.5, False),
        ("judge_score", "one", 0.4, False),
        ("held_out", "one", 0.9, False),
        ("judge_score", "two", 0.1, True),
    ],
)
def test_only_a_higher_score_of_the_same_kind_or_a_new_season_is_better(
    kind: MeritKind, season: str, value: float, better: bool
) -> None:
    assert is_better(Merit(kind=kind, season=season, value=value), published()) is better
    assert is_better(Merit(kind=kind, season=season, value=value), None)


def test_an_interval_must_pass_between_two_attempts() -> None:
    hour = timedelta(hours=1)
    assert is_rested(None, now=NOON, interval=hour)
    assert is_rested(NOON, now=NOON + hour, interval=hour)
    assert not is_rested(NOON, now=NOON + hour - timedelta(seconds=1), interval=hour)


def test_what_was_published_is_remembered_for_its_repository(tmp_path: Path) -> None:
    write_publication(tmp_path / "hub.json", published())
    assert read_publication(tmp_path / "hub.json", repository="me/model") == published()
    assert read_publication(tmp_path / "hub.json", repository="me/other") is None


@pytest.mark.parametrize("content", [None, b"", b"{}", b"\xff"])
def test_a_record_that_cannot_be_read_is_as_good_as_none(
    tmp_path: Path, content: bytes | None
) -> None:
    if content is not None:
        (tmp_path / "hub.json").write_bytes(content)
    assert read_publication(tmp_path / "hub.json", repository="me/model") is None
