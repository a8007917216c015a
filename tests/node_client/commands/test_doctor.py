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


async def test_a_reachable_coordinator_that_takes_the_token_is_well() -> None:
    async with running(Coordinator()) as coordinator:
        checks = await check_site(coordinator.site, token=TOKEN)
    assert levels(checks) == {"coordinator": "ok", "clock": "ok", "node socket": "ok"}


async def test_a_wrong_token_fails_with_the_servers_remedy() -> None:
    async with running(Coordinator()) as coordinator:
        checks = await check_site(coordinator.site, token="wrong")
    assert checks[-1].level == "fail"
    assert (checks[-1].detail, "new one" in checks[-1].remedy) == ("This token is unknown.", True)


async def test_without_a_token_the_socket_is_not_tested() -> None:
    async with running(Coordinator()) as coordinator:
        checks = await check_site(coordinator.site, token="")
    assert levels(checks)["node socket"] == "warn"


async def test_a_coordinator_that_is_not_there_fails_once() -> None:
    async with running(Coordinator()) as coordinator:
        site = coordinator.site
    [check] = await check_site(site, token=TOKEN)
    assert check.level == "fail"
    assert check.remedy


async def test_a_coordinator_in_trouble_fails() -> None:
    coordinator = Coordinator()
    coordinator.pages["/healthz"] = (HTTPStatus.SERVICE_UNAVAILABLE, "no")
    async with running(coordinator):
        [check] = await check_site(coordinator.site, token=TOKEN)
    assert (check.level, "503" in check.detail) == ("fail", True)


def test_only_a_local_site_or_https_keeps_the_token_secret() -> None:
    assert Site("https://swarm.org").encrypted
    assert Site("http://127.0.0.1:8000").encrypted
    assert not Site("http://swarm.org").encrypted


@pytest.mark.parametrize(("seconds", "word"), [(120, "ahead"), (-120, "behind")])
def test_a_wrong_clock_is_told_with_its_direction(seconds: int, word: str) -> None:
    check = doctor.compare_clocks(NOON, now=NOON + timedelta(seconds=seconds))
    assert check.level == "warn"
    assert f"120 s {word}" in check.detail
    assert doctor.compare_clocks(NOON, now=NOON).level == "ok"


@pytest.mark.parametrize(
    ("header", "told"),
    [
        ("Thu, 01 Jan 2026 12:00:00 GMT", NOON),
        ("Thu, 01 Jan 2026 12:00:00 -0000", NOON),
        ("noon", None),
        ("", None),
    ],
)
def test_a_servers_clock_is_read_where_it_tells_one(header: str, told: datetime | None) -> None:
    assert doctor.read_date(header) == told


def test_a_full_disk_is_told_before_a_checkpoint_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "not" / "made" / "yet"
    assert check_disk(folder).name == "disk"
    assert not folder.exists()
    monkeypatch.setattr(doctor, "NO_DISK_BYTES", 1 << 60)
    assert check_disk(folder).level == "fail"


def test_a_model_that_answers_is_well(tmp_path: Path) -> None:
    toy_policy().save(tmp_path)
    check = check_model(str(tmp_path), device="cpu")
    assert check.level == "ok", check


def test_a_model_that_is_not_there_fails_with_a_remedy(tmp_path: Path) -> None:
    check = check_model(str(tmp_path / "missing"), device="cpu")
    assert check.level == "fail"
    assert check.remedy


@pytest.mark.slow
def test_the_verifier_works_and_tells_how_it_is_shut_in() -> None:
    check = check_verifier()
    assert check.level in ("ok", "warn")
    assert "rlimits" in check.detail
