"""The package index offers the wheels of DIST_DIR and nothing else."""

import hashlib
from pathlib import Path

import pytest
from django.test import Client
from pytest_django import Settings

WHEEL = "swarm_node-0.2.0-py3-none-any.whl"


@pytest.fixture
def wheel(settings: Settings, tmp_path: Path) -> Path:
    settings.DIST_DIR = tmp_path / "dist"
    settings.DIST_DIR.mkdir()
    (tmp_path / "secret.whl").write_bytes(b"not offered")
    path: Path = settings.DIST_DIR / WHEEL
    path.write_bytes(b"wheel of the client")
    return path


def test_the_index_lists_projects_by_normalised_name(wheel: Path, client: Client) -> None:
    assert '<a href="/simple/swarm-node/">swarm-node</a>' in client.get("/simple/").content.decode()


def test_a_project_lists_files_with_their_hash(wheel: Path, client: Client) -> None:
    sha256 = hashlib.sha256(b"wheel of the client").hexdigest()
    html = client.get("/simple/swarm-node/").content.decode()
    assert f'href="/simple/swarm-node/{WHEEL}#sha256={sha256}"' in html


def test_names_are_compared_as_pep_503_says(wheel: Path, client: Client) -> None:
    assert client.get("/simple/Swarm_Node/").status_code == 200


def test_a_wheel_is_served(wheel: Path, client: Client) -> None:
    assert client.get(f"/simple/swarm-node/{WHEEL}").content == b"wheel of the client"


def test_a_replaced_wheel_has_a_new_hash(wheel: Path, client: Client) -> None:
    client.get("/simple/swarm-node/")
    wheel.write_bytes(b"another wheel")
    sha256 = hashlib.sha256(b"another wheel").hexdigest()
    assert sha256 in client.get("/simple/swarm-node/").content.decode()


@pytest.mark.parametrize("name", ["../secret.whl", "..%2Fsecret.whl", "secret.whl", "x.whl"])
def test_nothing_outside_the_folder_is_served(
    db: None, wheel: Path, client: Client, name: str
) -> None:
    assert client.get(f"/simple/swarm-node/{name}").status_code == 404
