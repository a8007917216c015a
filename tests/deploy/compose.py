"""The compose files as data, and helpers for tests of them."""

import re
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docker-compose.yml").read_text()
COMPOSE: dict[str, Any] = yaml.safe_load(TEXT)
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
NODES = [name for name, service in SERVICES.items() if service["image"].startswith("swarm-n")]
DEMO_NODES = [name for name in NODES if SERVICES[name]["profiles"] == ["demo"]]
PARTICIPANT: dict[str, Any] = yaml.safe_load((ROOT / "node_client" / "compose.yml").read_text())
# `:-` is followed by the default, `:?` by the error message for a missing value.
_VARIABLE = re.compile(r"\$\{(?P<name>\w+)(:-(?P<default>[^}]*)|:\?[^}]*)\}")


def is_one_shot(service: dict[str, Any]) -> bool:
    """Return whether the service runs once and exits."""
    return service.get("restart") == "no"


def variables(text: str) -> set[str]:
    """Return the names of the variables that compose substitutes in a text."""
    return set(re.findall(r"(?<!\$)\$\{(\w+)", text))


def resolve(service: dict[str, Any], env: dict[str, str]) -> dict[str, str]:
    """Return the environment of a service's container if .env sets these variables.

    As in the Compose specification: `${NAME:-default}` and `${NAME:?error}` in a value; a name
    without a value is passed on, or omitted if it is not set.
    """

    def fill(found: re.Match[str]) -> str:
        return env.get(found["name"]) or found["default"] or ""

    written = {
        name: env.get(name) if value is None else _VARIABLE.sub(fill, value)
        for name, value in service["environment"].items()
    }
    return {name: value for name, value in written.items() if value is not None}


def documented_settings() -> set[str]:
    """Return the names in .env.example, set or commented out."""
    return set(re.findall(r"^#?([A-Z_]+)=", (ROOT / ".env.example").read_text(), re.MULTILINE))


def settings_read() -> set[str]:
    """Return the names that the site's settings read from the environment."""
    source = (ROOT / "swarm_web/settings.py").read_text()
    return set(re.findall(r"env\.\w+\(\s*\"([A-Z_]+)\"", source))
