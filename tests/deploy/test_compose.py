"""The compose file describes the site that the launcher runs, safely."""

import re

import pytest

from swarm_web.local import commands
from swarm_web.local.demo import plan_nodes
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
# What .env does not decide: where the other containers are, where the image keeps its files, and
# that a site which others can reach shows no tracebacks.
DECIDED = {
    *("DATABASE_URL", "DATABASE_POOLER", "REDIS_URL", "REDIS_CLUSTER", "CELERY_BROKER_URL"),
    *("STATIC_ROOT", "STATIC_COMPRESSED", "DIST_DIR", "DEBUG"),
}
# A worker forks, which pools of connections do not survive.
WEB_ONLY = {"DATABASE_POOL"}


def test_the_site_has_all_its_parts() -> None:
    assert {"postgres", "redis", "migrate", "web", "worker", "beat"} <= set(SERVICES)


@pytest.mark.parametrize("name", SERVICES)
def test_each_service_is_health_checked_or_runs_once(name: str) -> None:
    service = SERVICES[name]
    assert is_one_shot(service) != bool(service.get("healthcheck", {}).get("test"))


@pytest.mark.parametrize("name", SERVICES)
def test_what_a_service_waits_for_exists_and_is_awaited_as_it_ends(name: str) -> None:
    for awaited, how in SERVICES[name].get("depends_on", {}).items():
        expected = (
            "service_completed_successfully"
            if is_one_shot(SERVICES[awaited])
            else "service_healthy"
        )
        assert how["condition"] == expected


@pytest.mark.parametrize("name", SERVICES)
def test_images_are_pinned_to_a_full_version(name: str) -> None:
    assert re.search(r":\d+\.\d+", SERVICES[name]["image"])


@pytest.mark.parametrize("name", SERVICES)
def test_secrets_come_from_outside_and_are_required(name: str) -> None:
    for variable, value in SERVICES[name].get("environment", {}).items():
        # Without a value it is passed on, so it comes from outside.
        if value is not None and re.search("(SECRET|PASSWORD|TOKEN)(?!_FILE)", variable):
            assert re.fullmatch(r"\$\{\w+:\?.+\}", value)
        if variable == "DATABASE_URL":
            assert re.search(r":\$\{POSTGRES_PASSWORD:\?[^}]+\}@", value)


def test_only_the_web_process_can_be_reached_and_only_from_this_machine() -> None:
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
def test_the_servers_run_what_the_launcher_runs(name: str, command: tuple[str, ...]) -> None:
    assert SERVICES[name]["command"] == list(command)


def test_the_demo_has_the_launchers_nodes() -> None:
    planned = plan_nodes(4)
    assert [node.name for node in planned] == DEMO_NODES
    for node in planned:
        _, *arguments = commands.join_swarm(
            url="http://web:8000",
            token_file=f"/tokens/{node.name}",
            model=node.model,
            arm=node.arm,
            state="/state",
        )
        assert SERVICES[node.name]["command"] == [*arguments, *commands.DEMO_TRAINING]
        assert SERVICES[node.name]["profiles"] == ["demo"]


def test_the_demo_registers_the_launchers_nodes() -> None:
    expected = [commands.CREATE_DEMO_SEASON] + [
        commands.create_node(name=node.name, arm=node.arm, token_file=f"/tokens/{node.name}")
        for node in plan_nodes(4)
    ]
    shell, flags, script = SERVICES["register"]["command"]
    assert (shell, flags) == ("sh", "-ec")
    assert script.splitlines() == [" ".join(command) for command in expected]


def test_a_node_gets_no_secret_of_the_server() -> None:
    for name in DEMO_NODES:
        assert set(SERVICES[name]["environment"]) == {"OMP_NUM_THREADS", "SWARM_WAIT_WHEN_REFUSED"}


def test_every_mounted_volume_is_declared() -> None:
    mounted = {
        volume.partition(":")[0]
        for service in SERVICES.values()
        for volume in service.get("volumes", [])
    }
    assert mounted == set(COMPOSE["volumes"])


def test_every_variable_is_explained_to_the_operator() -> None:
    assert variables(TEXT) <= documented_settings()


def test_every_setting_is_explained_to_the_operator() -> None:
    assert settings_read() <= documented_settings()


def test_nothing_is_explained_that_does_not_exist() -> None:
    assert documented_settings() <= settings_read() | variables(TEXT)


@pytest.mark.parametrize("name", SERVERS)
def test_every_setting_of_the_env_file_reaches_the_servers(name: str) -> None:
    others = DECIDED if name == "web" else DECIDED | WEB_ONLY
    chosen = (documented_settings() & settings_read()) - others
    environment = resolve(SERVICES[name], {setting: f"my {setting}" for setting in chosen})
    lost = {setting for setting in chosen if f"my {setting}" not in environment.get(setting, "")}
    assert lost == set()


@pytest.mark.parametrize("name", SERVERS)
def test_a_setting_that_is_left_out_has_the_servers_own_default(name: str) -> None:
    environment = resolve(SERVICES[name], {"SECRET_KEY": "s", "POSTGRES_PASSWORD": "p"})
    assert set(environment) == {
        *("SECRET_KEY", "DATABASE_URL", "REDIS_URL"),
        *("ALLOWED_HOSTS", "SITE_URL", "SITE_NAME", "HTTPS", "LOG_LEVEL"),
    }


@pytest.mark.parametrize("name", SERVERS)
def test_what_the_compose_file_decides_is_left_to_it(name: str) -> None:
    environment = resolve(SERVICES[name], dict.fromkeys(DECIDED, "mine"))
    assert "mine" not in environment.values()


@pytest.mark.parametrize("name", SERVERS)
def test_the_servers_environment_has_only_settings_that_are_read(name: str) -> None:
    assert set(SERVICES[name]["environment"]) <= settings_read()
