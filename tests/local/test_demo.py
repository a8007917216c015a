"""Test the nodes of the demo and their commands."""

from pathlib import Path

from swarm_web.local import commands
from swarm_web.local.demo import BASE_NODE, DemoNode, node_process, plan_nodes
from swarm_web.local.site import LocalSite

SITE = LocalSite(
    state=Path("/state"), port=8123, database_url="postgres://db", redis_url="redis://r"
)


def test_four_nodes_differ_only_in_their_arm() -> None:
    assert [node.arm for node in plan_nodes(4)] == ["swarm", "swarm", "swarm", "isolated"]


def test_fewer_than_four_nodes_are_all_in_the_swarm_arm() -> None:
    assert [node.arm for node in plan_nodes(3)] == ["swarm"] * 3


def test_names_are_unique_beyond_the_list_of_names() -> None:
    names = [node.name for node in plan_nodes(20)]
    assert len(set(names)) == 20


def test_base_node_has_no_training_options() -> None:
    command = node_process(SITE, BASE_NODE, outer={}).command
    assert not set(commands.DEMO_TRAINING) & set(command)
    assert command[command.index("--arm") + 1] == "base"


def test_node_joins_the_local_site_with_its_own_token_and_state_directory() -> None:
    process = node_process(SITE, DemoNode(name="knot", arm="isolated"), outer={})
    assert process.command[1:] == (
        *("join", "http://127.0.0.1:8123", "--token-file", "/state/tokens/knot"),
        *("--model", "tiny-rare", "--arm", "isolated"),
        *("--state-dir", "/state/nodes/knot", "--plain"),
        *commands.DEMO_TRAINING,
    )


def test_node_environment_contains_no_secret_of_the_server() -> None:
    secrets = {
        *("SECRET_KEY", "DATABASE_URL", "REDIS_URL", "CELERY_BROKER_URL"),
        *("EMAIL_URL", "GITHUB_CLIENT_SECRET"),
    }
    outer = dict.fromkeys(secrets, "s") | {"PATH": "/bin"}
    process = node_process(SITE, DemoNode(name="knot", arm="swarm"), outer=outer)
    assert not secrets & set(process.environment)
    assert process.environment["PATH"] == "/bin"
    assert process.environment["OMP_NUM_THREADS"] == "1"
