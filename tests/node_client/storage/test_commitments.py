from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from node_client.errors import SettingsError
from node_client.site import Site
from node_client.storage import commitments
from node_client.storage.commitments import (
    CommitmentLog,
    RecordedCommitment,
    find_commitment,
    read_commitments,
)
from swarm_protocol.messages import ChainHead, Restored, RoundInfo, RoundPhase
from tests.node_client.coordinator import open_round

HERE = Site("https://swarm.org")
ELSEWHERE = Site("https://elsewhere.org")
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def open_log(path: Path, *, site: Site = HERE) -> CommitmentLog:
    return CommitmentLog(path, site=site, clock=lambda: NOON)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "commitments.jsonl"


def test_commitment_of_a_round_is_recorded_once_with_the_time(path: Path) -> None:
    log = open_log(path)
    for _ in range(3):
        log.record(open_round(7, commitment="c0ffee"))
    open_log(path).record(open_round(7, commitment="c0ffee"))
    line = RecordedCommitment("https://swarm.org", 7, "c0ffee", "2026-01-01T12:00:00+00:00")
    assert read_commitments(path) == [line]


@pytest.mark.parametrize("phase", ["closed", "void"])
def test_commitment_is_not_recorded_if_it_is_empty_or_the_round_has_ended(
    path: Path, phase: RoundPhase
) -> None:
    log = open_log(path)
    log.record(msgspec.structs.replace(open_round(7, commitment="c0ffee"), phase=phase))
    log.record(open_round(8, commitment=""))
    log.record(None)
    assert read_commitments(path) == []


def test_changed_commitment_is_reported_once_and_the_first_is_kept(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    open_log(path).record(open_round(7, commitment="first"))
    log = open_log(path)
    for _ in range(2):
        log.record(open_round(7, commitment="second"))
    [warning] = caplog.messages
    assert "first" in warning
    assert "second" in warning
    assert [line.commitment for line in read_commitments(path)] == ["first"]


def test_rounds_are_separate_for_each_site(path: Path) -> None:
    open_log(path).record(open_round(7, commitment="here"))
    open_log(path, site=ELSEWHERE).record(open_round(7, commitment="there"))
    found = [find_commitment(path, site=site, number=7) for site in (HERE, ELSEWHERE)]
    assert [line.commitment for line in found if line] == ["here", "there"]
    assert find_commitment(path, site=HERE, number=8) is None


def test_only_the_latest_commitments_are_kept(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commitments, "MAX_COMMITMENTS", 3)
    log = open_log(path)
    for number in range(5):
        log.record(open_round(number, commitment=f"c{number}"))
    assert [line.round for line in read_commitments(path)] == [2, 3, 4]


def test_line_truncated_by_a_crash_does_not_affect_others(path: Path) -> None:
    open_log(path).record(open_round(1, commitment="one"))
    path.write_bytes(path.read_bytes() + b'{"site": "https://sw')
    open_log(path).record(open_round(2, commitment="two"))
    assert [line.commitment for line in read_commitments(path)] == ["one", "two"]


def test_failed_write_does_not_stop_the_node(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    open_log(tmp_path / "missing" / "file").record(open_round(1, commitment="one"))
    assert "was not recorded" in caplog.text


def test_commitment_that_could_not_be_written_is_written_with_the_next(tmp_path: Path) -> None:
    log = open_log(tmp_path / "later" / "file")
    log.record(open_round(1, commitment="one"))
    (tmp_path / "later").mkdir()
    log.record(open_round(2, commitment="two"))
    log.record(open_round(3, commitment="three"))
    assert [line.round for line in read_commitments(tmp_path / "later" / "file")] == [1, 2, 3]


def test_round_lost_by_restoring_an_even_older_backup_is_recorded_again(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = open_log(path)
    for sequence, commitment in [(50, "first"), (40, "second")]:
        log.update_restored(ChainHead(60, "9f" * 32, "", "", Restored(sequence, 6)))
        log.record(open_round(7, commitment=commitment))
    assert [line.commitment for line in read_commitments(path)] == ["first", "second"]
    assert not caplog.messages


def test_unreadable_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=str(tmp_path)):
        read_commitments(tmp_path)


def test_commitment_too_long_for_a_hash_is_not_recorded(path: Path) -> None:
    open_log(path).record(RoundInfo(1, "open", "", "", 1, "c" * 200))
    assert read_commitments(path) == []
