"""Test names, tokens and presence of nodes."""

import os
import stat
from datetime import timedelta
from io import StringIO
from pathlib import Path
from random import Random

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import IntegrityError, connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from swarm_web.nodes.models import PRESENCE_TIMEOUT, Node
from swarm_web.nodes.names import ADJECTIVES, BIRDS, draw_name
from swarm_web.nodes.presence import Departure, record_departures, touch
from swarm_web.nodes.services import authenticate, create_node, rotate_token

pytestmark = pytest.mark.django_db(transaction=True)


def test_token_authenticates_its_node_and_other_tokens_are_rejected() -> None:
    node, token = create_node()
    assert authenticate(token) == node
    assert authenticate(token + "x") is None


def test_database_does_not_contain_the_token() -> None:
    node, token = create_node()
    assert token not in str(Node.objects.filter(pk=node.pk).values().get())


def test_token_of_blocked_node_is_rejected() -> None:
    node, token = create_node()
    Node.objects.filter(pk=node.pk).update(blocked=True)
    assert authenticate(token) is None


def test_rotating_the_token_invalidates_the_old_one() -> None:
    node, old = create_node()
    new = rotate_token(node)
    assert authenticate(old) is None
    assert authenticate(new) == node


def test_name_is_drawn_again_if_it_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    names = iter(["amber-quiet-heron", "amber-quiet-heron", "bold-young-owl"])
    monkeypatch.setattr("swarm_web.nodes.services.draw_name", lambda random: next(names))
    assert [create_node()[0].name, create_node()[0].name] == ["amber-quiet-heron", "bold-young-owl"]


def test_word_lists_have_no_duplicates() -> None:
    assert len(set(ADJECTIVES)) == len(ADJECTIVES)
    assert len(set(BIRDS)) == len(BIRDS)


def test_drawn_name_has_two_different_adjectives() -> None:
    first, second, bird = draw_name(Random(1)).split("-")
    assert first != second
    assert bird in BIRDS


def test_touched_node_is_connected_until_presence_expires() -> None:
    now = timezone.now()
    node, _ = create_node()
    touch([node], now=now)
    assert list(Node.objects.connected(now=now)) == [node]
    assert not Node.objects.connected(now=now + PRESENCE_TIMEOUT).exists()


def test_node_that_left_is_not_connected() -> None:
    now = timezone.now()
    node, _ = create_node()
    touch([node], now=now)
    record_departures([Departure(node.pk, goodbye=True, now=now + timedelta(seconds=1))])
    node.refresh_from_db()
    assert not node.is_connected(now=now + timedelta(seconds=1))
    assert not Node.objects.connected(now=now + timedelta(seconds=1)).exists()


def test_create_node_writes_token_file_readable_only_by_its_owner(tmp_path: Path) -> None:
    file = tmp_path / "tokens" / "amber"
    call_command("create_node", name="amber", token_file=file, stdout=StringIO())
    assert stat.S_IMODE(os.stat(file).st_mode) == 0o600
    assert authenticate(file.read_text().strip()) == Node.objects.get(name="amber")


def test_create_node_restricts_an_existing_token_file_to_its_owner(tmp_path: Path) -> None:
    file = tmp_path / "amber"
    file.touch(0o644)
    call_command("create_node", name="amber", token_file=file, stdout=StringIO())
    assert stat.S_IMODE(os.stat(file).st_mode) == 0o600


def test_create_node_does_not_replace_valid_token_file(tmp_path: Path) -> None:
    file = tmp_path / "amber"
    call_command("create_node", name="amber", token_file=file, stdout=StringIO())
    before = file.read_text()
    call_command("create_node", name="amber", token_file=file, stdout=StringIO())
    assert file.read_text() == before


def test_create_node_sets_the_owner() -> None:
    vera = User.objects.create_user("vera")
    call_command("create_node", name="amber", owner="vera", stdout=StringIO())
    assert Node.objects.get(name="amber").owner == vera


def test_create_node_with_unknown_owner_creates_no_node(tmp_path: Path) -> None:
    file = tmp_path / "amber"
    with pytest.raises(CommandError, match="no user 'vera'"):
        call_command("create_node", name="amber", owner="vera", token_file=file)
    assert not Node.objects.exists()
    assert not file.exists()


def test_create_node_suggests_another_name_if_the_name_is_taken() -> None:
    call_command("create_node", name="amber", stdout=StringIO())
    with pytest.raises(CommandError, match="Choose another name"):
        call_command("create_node", name="amber", stdout=StringIO())


def test_no_node_is_created_if_the_token_file_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OSError, match="file"):
        call_command("create_node", name="amber", token_file=tmp_path / "file" / "amber")
    assert not Node.objects.exists()


@pytest.mark.parametrize("name", ["x/y", "", "a b", "é", "a" * 65, "amber\n"])
def test_create_node_explains_which_names_are_valid_if_the_name_is_not(name: str) -> None:
    with pytest.raises(CommandError, match="Use 1 to 64"):
        call_command("create_node", name=name, stdout=StringIO())
    assert not Node.objects.exists()


@pytest.mark.parametrize("name", ["x/y", "", "a b", "é", "amber\n"])
def test_database_rejects_name_that_is_not_a_slug(name: str) -> None:
    with pytest.raises(IntegrityError, match="node_name_is_a_slug"):
        Node.objects.create(name=name)


def test_migration_converts_existing_names_to_slugs() -> None:
    executor = MigrationExecutor(connection)
    old_state = executor.migrate([("nodes", "0003_hardware")])
    old_nodes = old_state.apps.get_model("nodes", "Node").objects
    names = ["amber", "x/y", "x-y-2", "///", "a" * 63 + "/"]
    for number, name in enumerate(names, start=1):
        old_nodes.create(pk=number, name=name, token_hash=str(number))
    # All migrations: those that depend on the nodes were reversed too.
    MigrationExecutor(connection).migrate(executor.loader.graph.leaf_nodes())
    assert list(Node.objects.order_by("pk").values_list("name", flat=True)) == [
        *("amber", "x-y-3", "x-y-2", "node-4", "a" * 40 + "-5")
    ]
