"""Test the downloads of a lab report: report, experiment and raw runs."""

import gzip
import io
import os
import tarfile
from pathlib import Path

import pytest
from django.test import AsyncClient, Client

from swarm_web.dashboard.downloads.lab import archive
from tests.dashboard.lab_reports import SETTINGS, write_report

# Error pages show the season.
pytestmark = pytest.mark.django_db


@pytest.fixture
def folder(lab: Path) -> Path:
    return write_report(lab / "sharing")


def unpack(content: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as packed:
        files = [(entry.name, packed.extractfile(entry)) for entry in packed.getmembers()]
        return {name: file.read() for name, file in files if file}


def test_symbolic_link_is_not_sent(folder: Path, client: Client) -> None:
    (folder / "experiment.toml").unlink()
    (folder / "experiment.toml").symlink_to("/etc/hostname")
    assert client.get("/lab/sharing/experiment.toml").status_code == 404


@pytest.mark.parametrize("file", ["report.json", "experiment.toml"])
def test_file_is_sent_unchanged(folder: Path, client: Client, file: str) -> None:
    answer = client.get(f"/lab/sharing/{file}")
    assert answer.content == (folder / file).read_bytes()
    assert answer.headers["Content-Disposition"] == f'attachment; filename="sharing-{file}"'


@pytest.mark.parametrize("file", ["report.json", "experiment.toml", "runs.tar.gz"])
def test_unchanged_file_returns_304(folder: Path, client: Client, file: str) -> None:
    etag = client.get(f"/lab/sharing/{file}").headers["ETag"]

    def request_again() -> int:
        return client.get(f"/lab/sharing/{file}", headers={"If-None-Match": etag}).status_code

    assert request_again() == 304
    changed = folder / file if file != "runs.tar.gz" else folder / "runs" / "8-0-1.jsonl.gz"
    os.utime(changed, ns=(1, 1))
    assert request_again() == 200


async def test_archive_contains_the_runs_and_their_experiment(
    folder: Path, async_client: AsyncClient
) -> None:
    answer = await async_client.get("/lab/sharing/runs.tar.gz")
    parts = [part async for part in answer]  # type: ignore[attr-defined]
    files = unpack(b"".join(parts))
    assert list(files) == [
        "sharing/experiment.toml",
        "sharing/runs/4-4-1.jsonl.gz",
        "sharing/runs/8-0-1.jsonl.gz",
    ]
    assert files["sharing/experiment.toml"].decode() == SETTINGS
    assert b'"arm":"4-4"' in gzip.decompress(files["sharing/runs/4-4-1.jsonl.gz"])


def test_archive_of_unchanged_files_is_reproducible(tmp_path: Path) -> None:
    run = tmp_path / "8-0-1.jsonl"
    run.write_bytes(b"{}\n" * 100_000)
    first = b"".join(archive("sharing", [run]))
    os.utime(run, ns=(1, 1))
    assert b"".join(archive("sharing", [run])) == first
    assert unpack(first) == {"sharing/runs/8-0-1.jsonl": run.read_bytes()}


def test_report_without_runs_has_no_archive(folder: Path, client: Client) -> None:
    for run in (folder / "runs").iterdir():
        run.unlink()
    assert client.get("/lab/sharing/runs.tar.gz").status_code == 404
    assert b"runs.tar.gz" not in client.get("/lab/sharing/").content


def test_missing_experiment_returns_404(folder: Path, client: Client) -> None:
    (folder / "experiment.toml").unlink()
    assert client.get("/lab/sharing/experiment.toml").status_code == 404
