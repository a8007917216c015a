"""Test the node containers: GPU, token and restart policy."""

import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from node_client.cli import app
from node_client.settings.fields import all_settings
from node_client.settings.sources import read_environment
from tests.deploy.compose import COMPOSE, NODES, PARTICIPANT, ROOT, SERVICES

TOKEN_FILE = "/run/secrets/token"
OURS: dict[str, dict[str, Any]] = PARTICIPANT["services"]
GPU_NODES = [OURS["gpu"], SERVICES["gpu-node"]]
ALL_NODES = [*OURS.values(), *(SERVICES[name] for name in NODES)]
# `${NAME:-default}` and `${NAME:+instead}` of the Compose specification.
_VARIABLE = re.compile(r"\$\{(\w+):([-+])([^}]*)\}")


def environment_of(service: dict[str, Any], env: dict[str, str]) -> dict[str, str]:
    """Return the environment of a container if .env sets these variables."""

    def fill(found: re.Match[str]) -> str:
        name, sign, word = found.groups()
        value = env.get(name, "")
        return (word if value else "") if sign == "+" else value or word

    return {name: _VARIABLE.sub(fill, value) for name, value in service["environment"].items()}


def test_profile_selects_the_cpu_or_gpu_service() -> None:
    assert {name: service["profiles"] for name, service in OURS.items()} == {
        "cpu": ["cpu"],
        "gpu": ["gpu"],
    }


@pytest.mark.parametrize("service", GPU_NODES)
def test_gpu_is_reserved_and_used(service: dict[str, Any]) -> None:
    assert service["deploy"]["resources"]["reservations"]["devices"] == [
        {"driver": "nvidia", "count": "all", "capabilities": ["gpu"]}
    ]
    assert service["environment"]["SWARM_DEVICE"] == "cuda"


@pytest.mark.parametrize("service", ALL_NODES)
def test_node_with_restart_policy_waits_when_it_is_refused(
    service: dict[str, Any],
) -> None:
    assert service["restart"] == "unless-stopped"
    assert service["environment"]["SWARM_WAIT_WHEN_REFUSED"] == "1"


@pytest.mark.parametrize("service", ALL_NODES)
def test_node_that_makes_no_progress_is_unhealthy(service: dict[str, Any], tmp_path: Path) -> None:
    kind, command, *arguments = service["healthcheck"]["test"]
    assert (kind, command) == ("CMD", "swarm-node")
    assert "--healthy" in arguments
    here = [str(tmp_path) if word == "/state" else word for word in arguments]
    result = CliRunner().invoke(app, here)
    assert (result.exit_code, "no run has started" in result.output) == (1, True)


def test_image_has_the_health_check_of_the_compose_file() -> None:
    dockerfile = (ROOT / "node_client" / "Dockerfile").read_text()
    words = ", ".join(f'"{word}"' for word in OURS["gpu"]["healthcheck"]["test"][1:])
    assert f"CMD [{words}]" in dockerfile


@pytest.mark.parametrize("service", [*OURS.values(), SERVICES["gpu-node"]])
def test_token_is_read_from_a_secret_or_from_the_volume(service: dict[str, Any]) -> None:
    assert service["secrets"] == ["token"]
    given = environment_of(service, {"TOKEN_FILE": "./token"})
    assert given["SWARM_TOKEN_FILE"] == TOKEN_FILE
    assert "token_file" not in read_environment(environment_of(service, {}))
    assert any(volume.endswith(":/state") for volume in service["volumes"])


@pytest.mark.parametrize("compose", [COMPOSE, PARTICIPANT])
def test_secret_is_empty_without_a_token_file(compose: dict[str, Any]) -> None:
    assert compose["secrets"] == {"token": {"file": "${TOKEN_FILE:-/dev/null}"}}


@pytest.mark.parametrize("service", [*OURS.values(), SERVICES["gpu-node"]])
def test_every_variable_of_the_container_is_a_setting(service: dict[str, Any]) -> None:
    known = {setting.variable for setting in all_settings().values()}
    assert set(service["environment"]) <= known
    written = {"MODEL": "m", "HOURS": "22-7", "GPU_FRACTION": "0.5"}
    assert "model" in read_environment(environment_of(service, written))


def test_mounted_volumes_of_a_participant_are_declared() -> None:
    mounted = {
        volume.partition(":")[0] for service in OURS.values() for volume in service["volumes"]
    }
    assert mounted == set(PARTICIPANT["volumes"])
