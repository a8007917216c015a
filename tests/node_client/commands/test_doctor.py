from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path

import pytest

from node_client.commands import doctor
from node_client.commands.doctor import (
    DoctorCheck,
    check_disk,
    check_model,
    check_site,
    check_verifier,
)
from node_client.site import Site
from tests.node_client.coordinator import TOKEN, Coordinator, running
from tests.node_client.fakes import toy_policy

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def levels(checks: Sequence[DoctorCheck]) -> dict[str, str]:
    return {check.name: check.level for check in checks}


async def test_reachable_coordinator_that_accepts_the_token_passes() -> None:
    async with running(Coordinator()) as coordinator:
        checks = await check_site(coordinator.site, token=TOKEN)
    assert levels(checks) == {"coordinator": "ok", "clock": "ok", "node socket": "ok"}


async def test_wrong_token_fails_with_the_remedy_of_the_server() -> None:
    async with running(Coordinator()) as coordinator:
        checks = await check_site(coordinator.site, token="wrong")
    assert checks[-1].level == "fail"
    assert (checks[-1].detail, "new one" in checks[-1].remedy) == ("This token is unknown.", True)


async def test_socket_is_not_tested_without_a_token() -> None:
    async with running(Coordinator()) as coordinator:
        checks = await check_site(coordinator.site, token="")
    assert levels(checks)["node socket"] == "warn"


async def test_missing_coordinator_fails_once() -> None:
    async with running(Coordinator()) as coordinator:
        site = coordinator.site
    [check] = await check_site(site, token=TOKEN)
    assert check.level == "fail"
    assert check.remedy


async def test_unhealthy_coordinator_fails() -> None:
    coordinator = Coordinator()
    coordinator.pages["/healthz"] = (HTTPStatus.SERVICE_UNAVAILABLE, "no")
    async with running(coordinator):
        [check] = await check_site(coordinator.site, token=TOKEN)
    assert (check.level, "503" in check.detail) == ("fail", True)


def test_only_https_or_a_local_site_counts_as_encrypted() -> None:
    assert Site("https://swarm.org").encrypted
    assert Site("http://127.0.0.1:8000").encrypted
    assert not Site("http://swarm.org").encrypted


@pytest.mark.parametrize(("seconds", "word"), [(120, "ahead"), (-120, "behind")])
def test_wrong_clock_is_reported_with_its_direction(seconds: int, word: str) -> None:
    check = doctor.compare_clocks(NOON, now=NOON + timedelta(seconds=seconds))
    assert check.level == "warn"
    assert f"120 s {word}" in check.detail
    assert doctor.compare_clocks(NOON, now=NOON).level == "ok"


@pytest.mark.parametrize(
    ("header", "date"),
    [
        ("Thu, 01 Jan 2026 12:00:00 GMT", NOON),
        ("Thu, 01 Jan 2026 12:00:00 -0000", NOON),
        ("noon", None),
        (f"Thu, 01 Jan 2026 12:00:{10**20} GMT", None),
        ("", None),
    ],
)
def test_date_header_of_a_server_is_read_if_valid(header: str, date: datetime | None) -> None:
    assert doctor.read_date(header) == date


def test_full_disk_is_reported_before_a_checkpoint_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "not" / "made" / "yet"
    assert check_disk(folder).name == "disk"
    assert not folder.exists()
    monkeypatch.setattr(doctor, "NO_DISK_BYTES", 1 << 60)
    assert check_disk(folder).level == "fail"


def test_model_that_answers_passes(tmp_path: Path) -> None:
    toy_policy().save(tmp_path)
    check = check_model(str(tmp_path), device="cpu")
    assert check.level == "ok", check


def test_missing_model_fails_with_a_remedy(tmp_path: Path) -> None:
    check = check_model(str(tmp_path / "missing"), device="cpu")
    assert check.level == "fail"
    assert check.remedy


@pytest.mark.slow
def test_verifier_works_and_its_isolation_is_reported() -> None:
    check = check_verifier()
    assert check.level in ("ok", "warn")
    assert "rlimits" in check.detail
