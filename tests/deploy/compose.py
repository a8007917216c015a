"""The compose file as data, and the parts of it that the checks talk about."""

import re
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docker-compose.yml").read_text()
COMPOSE: dict[str, Any] = yaml.safe_load(TEXT)
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
DEMO_NODES = [name for name, service in SERVICES.items() if service["image"].startswith("swarm-n")]


def is_one_shot(service: dict[str, Any]) -> bool:
    """Say whether the service runs once, to its end."""
    return service.get("restart") == "no"


def variables(text: str) -> set[str]:
    """Return the names of the variables that compose puts into a text."""
    return set(re.findall(r"(?<!\$)\$\{(\w+)", text))


def documented_settings() -> set[str]:
    """Return the names that .env.example explains, set or commented out."""
    return set(re.findall(r"^#?([A-Z_]+)=", (ROOT / ".env.example").read_text(), re.MULTILINE))


def settings_read() -> set[str]:
    """Return the names that the site's settings read from the environment."""
    source = (ROOT / "swarm_web/settings.py").read_text()
    return set(re.findall(r"env\.\w+\(\s*\"([A-Z_]+)\"", source))
