"""Test the override for several web processes behind one proxy, with Postgres behind a pooler."""

import re
from typing import Any

import pytest
import yaml

from tests.deploy.compose import ROOT, SERVICES, documented_settings, settings_read, variables

TEXT = (ROOT / "docker-compose.scale.yml").read_text()
CADDYFILE = (ROOT / "deploy" / "Caddyfile").read_text()
WEB = ["web", "web2", "web3", "web4"]
POOLED = [*WEB, "worker", "beat"]


class _Loader(yaml.SafeLoader):
    """Read `!reset` as the value that replaces the other file's value."""


def _read_reset(loader: _Loader, node: yaml.SequenceNode) -> list[Any]:
    return loader.construct_sequence(node)


_Loader.add_constructor("!reset", _read_reset)
SCALED: dict[str, dict[str, Any]] = yaml.load(TEXT, Loader=_Loader)["services"]


def test_caddy_proxies_to_all_web_processes_and_no_other() -> None:
    found = re.search(r"reverse_proxy (.+) \{", CADDYFILE)
    assert found
    assert found[1].split() == [f"{name}:8000" for name in WEB]
    assert set(SCALED["caddy"]["depends_on"]) == set(WEB)


@pytest.mark.parametrize("name", WEB[1:])
def test_additional_web_processes_equal_the_one_of_the_compose_file(name: str) -> None:
    assert SCALED[name]["extends"] == {"file": "docker-compose.yml", "service": "web"}
    own = {key: value for key, value in SCALED[name].items() if key != "extends"}
    assert own == SCALED["web"]


def test_only_caddy_publishes_ports() -> None:
    published = {name for name, service in SCALED.items() if service.get("ports")}
    assert published == {"caddy"}
    assert all(SCALED[name]["ports"] == [] for name in WEB)
    assert TEXT.count("ports: !reset []") == 1


@pytest.mark.parametrize("name", POOLED)
def test_site_connects_to_postgres_through_the_pooler(name: str) -> None:
    environment = SCALED[name]["environment"]
    base = SERVICES["web"]["environment"]["DATABASE_URL"]
    assert environment["DATABASE_URL"] == base.replace("@postgres:", "@pgbouncer:")
    assert environment["DATABASE_POOLER"] == "true"
    assert environment.keys() <= settings_read()


def test_migrations_connect_to_postgres_directly() -> None:
    assert "migrate" not in SCALED


def test_postgres_allows_as_many_connections_as_the_pooler_opens() -> None:
    pooler = SCALED["pgbouncer"]["environment"]
    found = re.search(r"max_connections=(\d+)", " ".join(SCALED["postgres"]["command"]))
    assert found
    assert pooler["POOL_MODE"] == "transaction"
    assert pooler["DEFAULT_POOL_SIZE"] <= int(found[1]) / 2
    # Each web process holds up to DATABASE_POOL = 16.
    assert len(WEB) * 16 < pooler["MAX_CLIENT_CONN"]


def test_valkey_does_not_evict_and_disconnects_slow_subscribers() -> None:
    command = " ".join(SCALED["redis"]["command"])
    assert "--maxmemory-policy noeviction" in command
    assert "--client-output-buffer-limit pubsub" in command


@pytest.mark.parametrize(
    "line",
    ["lb_policy least_conn", "health_uri /healthz", "Host 127.0.0.1", "stream_close_delay 24h"],
)
def test_caddy_balances_sockets_and_keeps_them_open_during_a_reload(line: str) -> None:
    assert line in CADDYFILE


@pytest.mark.parametrize("name", ["caddy", "pgbouncer"])
def test_added_services_are_pinned_unprivileged_and_have_a_health_check(name: str) -> None:
    service = SCALED[name]
    assert re.search(r":v?\d+\.\d+\.\d+", service["image"])
    assert service["healthcheck"]["test"]
    assert service["cap_drop"] == ["ALL"]
    assert service["restart"] == "unless-stopped"


def test_every_variable_is_documented_in_env_example() -> None:
    assert variables(TEXT) <= documented_settings()


def test_file_contains_no_secret() -> None:
    secrets = re.findall(r"(?:PASSWORD: |murmuration:)(\S+?PASSWORD\S*)", TEXT)
    assert secrets
    assert all(secret.startswith("${POSTGRES_PASSWORD:?") for secret in secrets)
