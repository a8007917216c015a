"""The environment variables that the parts of a local site get."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from swarm_web.local.errors import LaunchError
from swarm_web.local.ports import HOST
from swarm_web.local.state import keep_secret

# What only the server may know: a node works on strangers' completions.
_SERVER_SECRETS = ("SECRET_KEY", "DATABASE_URL", "REDIS_URL", "CELERY_BROKER_URL")
_SITE_FILE = "site.json"


@dataclass(frozen=True, kw_only=True)
class Site:
    """Where one local site lives."""

    state: Path
    port: int
    database_url: str
    redis_url: str

    @property
    def url(self) -> str:
        """The address that browsers and nodes of this machine use."""
        return f"http://{HOST}:{self.port}"

    @property
    def static(self) -> Path:
        """Where static files are collected."""
        return self.state / "static"

    @property
    def wheels(self) -> Path:
        """Where the node client's wheel is offered from."""
        return self.state / "dist"


def site_settings(site: Site, outer: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that the launcher decides; what `outer` sets wins where it may.

    ALLOWED_HOSTS always has this machine's address: health checks and demo nodes use it.
    """
    defaults = {
        "HTTPS": "false",
        "SECRET_KEY": keep_secret(site.state / "secret_key"),
        "SITE_URL": site.url,
        "STATIC_ROOT": str(site.static),
        # Half a minute of work that pays on slow links only.
        "STATIC_COMPRESSED": "false",
        "DIST_DIR": str(site.wheels),
        # Only this machine reaches it, so whoever tries it out needs no account.
        "ANONYMOUS_JOIN": "true",
    }
    hosts = filter(None, [*outer.get("ALLOWED_HOSTS", "localhost").split(","), HOST])
    decided = {
        "ALLOWED_HOSTS": ",".join(dict.fromkeys(hosts)),
        "DATABASE_URL": site.database_url,
        "REDIS_URL": site.redis_url,
        "DJANGO_SETTINGS_MODULE": "swarm_web.settings",
    }
    return {name: outer.get(name, value) for name, value in defaults.items()} | decided


def server_environment(site: Site, outer: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of the server's processes."""
    return {**outer, **site_settings(site, outer), "PYTHONUNBUFFERED": "1"}


def node_environment(outer: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a demo node: none of the server's secrets, one thread.

    Several small models on one machine are faster when each keeps to one core.
    """
    kept = {name: value for name, value in outer.items() if name not in _SERVER_SECRETS}
    return {**kept, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}


def remember_site(site: Site, outer: Mapping[str, str]) -> None:
    """Write down the running site's settings for `manage`; nobody else may read them."""
    path = site.state / _SITE_FILE
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump(site_settings(site, outer), file)


def recall_site(state: Path) -> dict[str, str]:
    """Return the settings of the site in `state`. Raises LaunchError when there is none."""
    try:
        settings: dict[str, str] = json.loads((state / _SITE_FILE).read_text())
    except FileNotFoundError as error:
        raise LaunchError(
            f"There is no site in {state}. Start one with `make up` and leave it running."
        ) from error
    return settings
