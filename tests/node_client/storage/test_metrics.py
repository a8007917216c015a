"""The metrics file contains each step once, in order, whatever happened to the client."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from node_client.storage import metrics
from node_client.storage.metrics import MetricsFile, read_rewards

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def open_file(folder: Path) -> MetricsFile:
    return MetricsFile(folder / "metrics.jsonl", clock=lambda: NOON)


def steps_in(path: Path) -> list[int]:
    return [json.loads(line)["step"] for line in path.read_text().splitlines()]


def test_step_is_one_line_with_its_time(tmp_path: Path) -> None:
    file = open_file(tmp_path)
    file.begin(step=0)
    file.log({"reward": 0.5, "season": "sums"}, step=1)
    [line] = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert json.loads(line) == {
        "step": 1,
        "time": "2026-01-01T12:00:00.000+00:00",
        "reward": 0.5,
        "season": "sums",
    }


def test_resumed_run_truncates_the_steps_that_it_repeats(tmp_path: Path) -> None:
    file = open_file(tmp_path)
    for step in range(1, 8):
        file.log({}, step=step)
    again = open_file(tmp_path)
    again.begin(step=4)
    again.log({}, step=5)
    assert steps_in(tmp_path / "metrics.jsonl") == [1, 2, 3, 4, 5]


def test_partial_line_is_truncated_at_the_start(tmp_path: Path) -> None:
    file = open_file(tmp_path)
    file.log({}, step=1)
    with (tmp_path / "metrics.jsonl").open("ab") as raw:
        raw.write(b'{"step": 2, "rew')
    file.begin(step=9)
    file.log({}, step=10)
    assert steps_in(tmp_path / "metrics.jsonl") == [1, 10]


def test_partial_line_does_not_swallow_the_next_one(tmp_path: Path) -> None:
    file = open_file(tmp_path)
    (tmp_path / "metrics.jsonl").write_bytes(b'{"step": 1, "rew')
    file.log({}, step=2)
    assert json.loads((tmp_path / "metrics.jsonl").read_text().splitlines()[-1])["step"] == 2


def test_unsaved_steps_are_replaced_by_their_repetition(tmp_path: Path) -> None:
    open_file(tmp_path).log({}, step=1)
    restarted = open_file(tmp_path)
    restarted.begin(step=0)
    restarted.log({}, step=1)
    assert steps_in(tmp_path / "metrics.jsonl") == [1]
    assert list(tmp_path.iterdir()) == [tmp_path / "metrics.jsonl"]


def test_file_is_bounded_and_a_resumed_run_also_truncates_the_full_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "MAX_BYTES", 300)
    file = open_file(tmp_path)
    for step in range(1, 30):
        file.log({}, step=step)
    full, current = tmp_path / "metrics.1.jsonl", tmp_path / "metrics.jsonl"
    assert sorted(tmp_path.iterdir()) == [full, current]
    assert max(full.stat().st_size, current.stat().st_size) < 400
    kept = [*steps_in(full), *steps_in(current)]
    assert kept == list(range(kept[0], 30))
    file.begin(step=kept[1])
    file.log({}, step=kept[2])
    assert [*steps_in(full), *steps_in(current)] == kept[:3]


def test_unwritable_disk_is_reported_once_and_is_not_an_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = open_file(tmp_path / "missing")
    file.begin(step=0)
    for step in (1, 2, 3):
        file.log({}, step=step)
    assert len(caplog.messages) == 1


def rewards_in(folder: Path, *, limit: int = 200) -> list[float]:
    return read_rewards(folder / "metrics.jsonl", season="sums", limit=limit)


def log_rewards(folder: Path, rewards: list[float], *, season: str = "sums") -> None:
    file = open_file(folder)
    for step, reward in enumerate(rewards, start=1):
        file.log({"reward": reward, "season": season}, step=step)


def test_latest_rewards_are_read_in_order(tmp_path: Path) -> None:
    log_rewards(tmp_path, [0.1, 0.2, 0.3])
    assert rewards_in(tmp_path) == [0.1, 0.2, 0.3]
    assert rewards_in(tmp_path, limit=2) == [0.2, 0.3]


def test_missing_metrics_give_no_rewards(tmp_path: Path) -> None:
    assert rewards_in(tmp_path) == []
    (tmp_path / "metrics.jsonl").mkdir()
    assert rewards_in(tmp_path) == []


def test_rewards_of_an_earlier_season_are_omitted(tmp_path: Path) -> None:
    log_rewards(tmp_path, [0.9], season="before")
    log_rewards(tmp_path, [0.1, 0.2])
    assert rewards_in(tmp_path) == [0.1, 0.2]


def test_broken_lines_are_skipped(tmp_path: Path) -> None:
    log_rewards(tmp_path, [0.1, 0.2])
    with (tmp_path / "metrics.jsonl").open("ab") as raw:
        raw.write(b'\xff\n[]\n{"step": 3}\n{"step": 4, "rew')
    log_rewards(tmp_path, [0.3])
    assert rewards_in(tmp_path) == [0.1, 0.2, 0.3]


def test_rewards_are_read_across_two_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "MAX_BYTES", 150)
    log_rewards(tmp_path, [0.1, 0.2, 0.3])
    assert (tmp_path / "metrics.1.jsonl").exists()
    assert rewards_in(tmp_path) == [0.1, 0.2, 0.3]


def test_only_the_end_of_a_long_file_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_rewards(tmp_path, [0.1, 0.2, 0.3])
    monkeypatch.setattr(metrics, "_TAIL_BYTES", 150)
    assert rewards_in(tmp_path) == [0.3]
