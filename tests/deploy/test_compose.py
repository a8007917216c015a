"""Test that the compose file describes the site that the launcher runs, and is secure."""

import re

import pytest

from swarm_web.local import commands
from swarm_web.local.demo import MODEL, plan_nodes
from tests.deploy.compose import (
    COMPOSE,
    DEMO_NODES,
    SERVICES,
    TEXT,
    documented_settings,
    is_one_shot,
    resolve,
    settings_read,
    variables,
)

BEAT_SCHEDULE = "/tmp/celerybeat-schedule"
TCP_PORT = 8000
SERVERS = ["migrate", "web", "worker", "beat", "register"]
# Not decided by .env: the addresses of the other containers, the paths in the image, and that a
# public site shows no tracebacks.
FIXED = {
    *("DATABASE_URL", "DATABASE_POOLER", "REDIS_URL", "REDIS_CLUSTER", "CELERY_BROKER_URL"),
    *("STATIC_ROOT", "STATIC_COMPRESSED", "DIST_DIR", "DEBUG"),
}
# A worker forks, and connection pools do not survive a fork.
WEB_ONLY = {"DATABASE_POOL"}


def test_all_parts_of_the_site_are_services() -> None:
    assert {"postgres", "redis", "migrate", "web", "worker", "beat"} <= set(SERVICES)


@pytest.mark.parametrize("name", SERVICES)
def test_service_has_a_health_check_or_runs_once(name: str) -> None:
    service = SERVICES[name]
    assert is_one_shot(service) != bool(service.get("healthcheck", {}).get("test"))


@pytest.mark.parametrize("name", SERVICES)
def test_service_depends_on_health_or_completion_of_existing_services(name: str) -> None:
    for awaited, how in SERVICES[name].get("depends_on", {}).items():
        expected = (
            "service_completed_successfully"
            if is_one_shot(SERVICES[awaited])
            else "service_healthy"
        )
        assert how["condition"] == expected


@pytest.mark.parametrize("name", SERVICES)
def test_image_is_pinned_to_a_full_version(name: str) -> None:
    assert re.search(r":\d+\.\d+", SERVICES[name]["image"])


@pytest.mark.parametrize("name", SERVICES)
def test_secrets_are_required_variables(name: str) -> None:
    for variable, value in SERVICES[name].get("environment", {}).items():
        # A name without a value is passed on, so it comes from outside.
        if value is not None and re.search("(SECRET|PASSWORD|TOKEN)(?!_FILE)", variable):
            assert re.fullmatch(r"\$\{\w+:\?.+\}", value)
        if variable == "DATABASE_URL":
            assert re.search(r":\$\{POSTGRES_PASSWORD:\?[^}]+\}@", value)


def test_only_the_web_process_is_published_and_only_on_loopback() -> None:
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert published == {"web": ["${LISTEN:-127.0.0.1:8000}:8000"]}


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("migrate", commands.MIGRATE),
        ("web", commands.serve_web(host="0.0.0.0", port=TCP_PORT)),
        ("worker", commands.WORKER),
        ("beat", commands.run_beat(BEAT_SCHEDULE)),
    ],
)
def test_servers_run_the_commands_of_the_launcher(name: str, command: tuple[str, ...]) -> None:
    assert SERVICES[name]["command"] == list(command)


def test_demo_profile_has_the_nodes_of_the_launcher() -> None:
    planned = plan_nodes(4)
    assert [node.name for node in planned] == DEMO_NODES
    for node in planned:
        _, *arguments = commands.join_swarm(
            url="http://web:8000",
            token_file=f"/tokens/{node.name}",
            model=MODEL,
            arm=node.arm,
            state="/state",
        )
        assert SERVICES[node.name]["command"] == [*arguments, *commands.DEMO_TRAINING]
        assert SERVICES[node.name]["profiles"] == ["demo"]


def test_register_service_creates_the_nodes_of_the_launcher() -> None:
    expected = [commands.CREATE_DEMO_SEASON] + [
        commands.create_node(name=node.name, arm=node.arm, token_file=f"/tokens/{node.name}")
        for node in plan_nodes(4)
    ]
    shell, flags, script = SERVICES["register"]["command"]
    assert (shell, flags) == ("sh", "-ec")
    assert script.splitlines() == [" ".join(command) for command in expected]


def test_demo_node_has_no_secret_of_the_server() -> None:
    for name in DEMO_NODES:
        assert set(SERVICES[name]["environment"]) == {"OMP_NUM_THREADS", "SWARM_WAIT_WHEN_REFUSED"}


def test_every_mounted_volume_is_declared() -> None:
    mounted = {
        volume.partition(":")[0]
        for service in SERVICES.values()
        for volume in service.get("volumes", [])
    }
    assert mounted == set(COMPOSE["volumes"])


def test_every_variable_is_documented_in_env_example() -> None:
    assert variables(TEXT) <= documented_settings()


def test_every_setting_is_documented_in_env_example() -> None:
    assert settings_read() <= documented_settings()


def test_env_example_documents_only_existing_settings_and_variables() -> None:
    assert documented_settings() <= settings_read() | variables(TEXT)


@pytest.mark.parametrize("name", SERVERS)
def test_servers_receive_every_setting_of_the_env_file(name: str) -> None:
    others = FIXED if name == "web" else FIXED | WEB_ONLY
    chosen = (documented_settings() & settings_read()) - others
    environment = resolve(SERVICES[name], {setting: f"my {setting}" for setting in chosen})
    lost = {setting for setting in chosen if f"my {setting}" not in environment.get(setting, "")}
    assert lost == set()


@pytest.mark.parametrize("name", SERVERS)
def test_omitted_setting_has_the_default_of_the_server(name: str) -> None:
    environment = resolve(SERVICES[name], {"SECRET_KEY": "s", "POSTGRES_PASSWORD": "p"})
    assert set(environment) == {
        *("SECRET_KEY", "DATABASE_URL", "REDIS_URL"),
        *("ALLOWED_HOSTS", "SITE_URL", "SITE_NAME", "HTTPS", "LOG_LEVEL"),
    }


@pytest.mark.parametrize("name", SERVERS)
def test_env_file_does_not_override_fixed_settings(name: str) -> None:
    environment = resolve(SERVICES[name], dict.fromkeys(FIXED, "mine"))
    assert "mine" not in environment.values()


@pytest.mark.parametrize("name", SERVERS)
def test_environment_of_servers_has_only_settings_that_are_read(name: str) -> None:
    assert set(SERVICES[name]["environment"]) <= settings_read()
