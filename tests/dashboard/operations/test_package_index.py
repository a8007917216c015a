"""Test the package index: it serves the wheels of DIST_DIR and redirects for other projects."""

import asyncio
import hashlib
import zipfile
from pathlib import Path

import pytest
from django.test import AsyncClient, Client
from pytest_django import Settings

from tests.processes import PROJECT
from tests.wheels import make_wheel

WHEEL = "swarm_node-0.2.0-py3-none-any.whl"
FALLBACK = "https://index.example.org/simple/"
TORCH_CPU = "https://torch.example.org/cpu"


@pytest.fixture
def wheel(settings: Settings, tmp_path: Path) -> Path:
    settings.DIST_DIR = tmp_path / "dist"
    settings.DIST_DIR.mkdir()
    settings.PACKAGE_FALLBACK_URL, settings.PACKAGE_TORCH_CPU_URL = FALLBACK, TORCH_CPU
    (tmp_path / "secret.whl").write_bytes(b"not offered")
    return make_wheel(settings.DIST_DIR, "swarm-node", "0.2.0", requires_python=">=3.11")


def test_index_lists_projects_by_normalized_name(wheel: Path, client: Client) -> None:
    assert '<a href="/simple/swarm-node/">swarm-node</a>' in client.get("/simple/").content.decode()


def test_cpu_index_lists_projects_under_its_own_path(wheel: Path, client: Client) -> None:
    html = client.get("/simple/cpu/").content.decode()
    assert '<a href="/simple/cpu/swarm-node/">swarm-node</a>' in html


@pytest.mark.parametrize("index", ["/simple", "/simple/cpu"])
def test_project_page_lists_files_with_their_hash(wheel: Path, client: Client, index: str) -> None:
    sha256 = hashlib.sha256(wheel.read_bytes()).hexdigest()
    html = client.get(f"{index}/swarm-node/").content.decode()
    assert f'href="/simple/swarm-node/{WHEEL}#sha256={sha256}"' in html


def test_project_page_contains_requires_python(wheel: Path, client: Client) -> None:
    html = client.get("/simple/swarm-node/").content.decode()
    assert 'data-requires-python="&gt;=3.11"' in html


def test_metadata_of_a_wheel_is_served_with_its_hash(wheel: Path, client: Client) -> None:
    metadata = client.get(f"/simple/swarm-node/{WHEEL}.metadata").content
    assert b"\nRequires-Python: >=3.11\n" in metadata
    sha256 = hashlib.sha256(metadata).hexdigest()
    html = client.get("/simple/swarm-node/").content.decode()
    assert f'data-core-metadata="sha256={sha256}"' in html


def test_invalid_wheel_does_not_hide_other_files(wheel: Path, client: Client) -> None:
    broken = wheel.with_name("swarm_node-0.3.0-py3-none-any.whl")
    broken.write_bytes(b"half of a file")
    assert WHEEL in client.get("/simple/swarm-node/").content.decode()
    assert client.get(f"/simple/swarm-node/{broken.name}.metadata").status_code == 404


def test_wheel_with_damaged_metadata_does_not_hide_other_files(wheel: Path, client: Client) -> None:
    damaged = wheel.with_name("swarm_node-0.3.0-py3-none-any.whl")
    name = "swarm_node-0.3.0.dist-info/METADATA"
    with zipfile.ZipFile(damaged, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, "Name: swarm-node")
    data = bytearray(damaged.read_bytes())
    # The first byte of the compressed data, after the header and the name: no block begins so.
    data[30 + len(name)] = 0xFF
    damaged.write_bytes(data)
    assert WHEEL in client.get("/simple/swarm-node/").content.decode()
    assert client.get(f"/simple/swarm-node/{damaged.name}.metadata").status_code == 404


def test_project_name_is_normalized(wheel: Path, client: Client) -> None:
    assert client.get("/simple/Swarm_Node/").status_code == 200


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("/simple/torch/", f"{FALLBACK}torch/"),
        ("/simple/cpu/torch/", f"{TORCH_CPU}/torch/"),
        ("/simple/cpu/Reasoning_Gym/", f"{FALLBACK}reasoning-gym/"),
    ],
    ids=["any-build", "cpu-build", "another-project-of-the-cpu-index"],
)
def test_other_projects_are_redirected_to_their_index(
    wheel: Path, client: Client, path: str, target: str
) -> None:
    answer = client.get(path)
    assert (answer.status_code, answer["Location"]) == (302, target)


@pytest.mark.parametrize("index", ["/simple", "/simple/cpu"])
def test_client_is_never_redirected(wheel: Path, client: Client, index: str) -> None:
    wheel.unlink()
    answer = client.get(f"{index}/Swarm.Node/")
    assert answer.status_code == 404
    assert "no wheel of swarm-node" in answer.content.decode()


def test_other_project_in_dist_dir_is_not_redirected(wheel: Path, client: Client) -> None:
    make_wheel(wheel.parent, "torch", "2.13.0")
    assert client.get("/simple/cpu/torch/").status_code == 200


@pytest.mark.parametrize(
    ("path", "setting"),
    [("/simple/torch/", "PACKAGE_FALLBACK_URL"), ("/simple/cpu/torch/", "PACKAGE_TORCH_CPU_URL")],
)
def test_missing_fallback_returns_404_and_names_the_setting(
    wheel: Path, client: Client, settings: Settings, path: str, setting: str
) -> None:
    setattr(settings, setting, "")
    answer = client.get(path)
    assert answer.status_code == 404
    assert setting in answer.content.decode()


@pytest.mark.parametrize("name", ["..", "a b", "@evil.example.org", "-x", "%2e%2e"])
def test_invalid_name_is_not_redirected(wheel: Path, client: Client, name: str) -> None:
    assert client.get(f"/simple/{name}/").status_code == 404


async def test_wheel_is_streamed(wheel: Path, async_client: AsyncClient) -> None:
    content = await asyncio.to_thread(wheel.read_bytes)
    answer = await async_client.get(f"/simple/swarm-node/{WHEEL}")
    assert b"".join([part async for part in answer]) == content  # type: ignore[attr-defined]
    assert answer["Content-Length"] == str(len(content))


def test_unchanged_wheel_returns_304(wheel: Path, client: Client) -> None:
    etag = client.get(f"/simple/swarm-node/{WHEEL}")["ETag"]
    again = client.get(f"/simple/swarm-node/{WHEEL}", headers={"if-none-match": etag})
    assert again.status_code == 304


def test_unchanged_page_returns_304(wheel: Path, client: Client) -> None:
    etag = client.get("/simple/swarm-node/")["ETag"]
    again = client.get("/simple/swarm-node/", headers={"if-none-match": etag})
    assert again.status_code == 304


@pytest.mark.parametrize(
    "path", ["/simple/", "/simple/swarm-node/", f"/simple/swarm-node/{WHEEL}", "/simple/torch/"]
)
def test_responses_are_revalidated_and_not_indexed(wheel: Path, client: Client, path: str) -> None:
    answer = client.head(path)
    assert (answer["Cache-Control"], answer["X-Robots-Tag"]) == ("no-cache", "noindex")
    assert not answer.getvalue()


def test_constraints_file_is_served(wheel: Path, client: Client) -> None:
    constraints = (PROJECT / "constraints.txt").read_text()
    assert client.get("/simple/constraints.txt").content.decode() == constraints


def test_replaced_wheel_has_a_new_hash(wheel: Path, client: Client) -> None:
    client.get("/simple/swarm-node/")
    wheel.write_bytes(b"another wheel")
    sha256 = hashlib.sha256(b"another wheel").hexdigest()
    assert sha256 in client.get("/simple/swarm-node/").content.decode()


@pytest.mark.parametrize(
    "name", ["../secret.whl", "..%2Fsecret.whl", "secret.whl", "x.whl", "secret.whl.metadata"]
)
def test_files_outside_the_directory_are_not_served(
    db: None, wheel: Path, client: Client, name: str
) -> None:
    assert client.get(f"/simple/swarm-node/{name}").status_code == 404
