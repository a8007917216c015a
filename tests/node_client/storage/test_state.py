import subprocess
import sys
from pathlib import Path

import pytest

from node_client.errors import SettingsError, StateLockedError
from node_client.site import Site
from node_client.storage.state import NodeRecord, StateDir

SITE = Site("https://swarm.org")


def test_token_is_readable_only_by_its_owner(tmp_path: Path) -> None:
    state = StateDir(tmp_path / "state")
    with state.lock():
        state.save(NodeRecord(url=SITE.base, token="secret"))
        state.task_key()
    assert (state.path.stat().st_mode & 0o777) == 0o700
    files = [path for path in state.path.iterdir() if path.name != "lock"]
    assert {path.name for path in files} == {"node.json", "task.key"}
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}


def test_token_is_recalled_only_for_its_own_site(tmp_path: Path) -> None:
    state = StateDir(tmp_path)
    state.save(NodeRecord(url=SITE.base, token="secret"))
    assert state.load_for(SITE).token == "secret"
    assert state.load_for(Site("https://elsewhere.org")).token == ""
    assert state.load_for(None).token == ""


def test_token_of_an_anonymous_node_is_only_replaced_after_it_was_deleted(tmp_path: Path) -> None:
    state = StateDir(tmp_path)
    other = NodeRecord(url="https://elsewhere.org", token="other")
    state.save(NodeRecord(url=SITE.base, token="secret", node="heron", anonymous=True))
    with pytest.raises(SettingsError, match=f"heron at {SITE.base} belongs to no account"):
        state.save(other)
    for token in ("secret", ""):
        state.save(NodeRecord(url=SITE.base, token=token, node="heron", anonymous=True))
    state.save(other)
    assert state.load() == other


def test_truncated_key_is_refused(tmp_path: Path) -> None:
    state = StateDir(tmp_path)
    state.signing_key()
    (tmp_path / "signing.key").write_bytes(b"short")
    with pytest.raises(SettingsError, match="5 bytes instead of 32"):
        state.signing_key()


def test_task_key_is_permanent(tmp_path: Path) -> None:
    key = StateDir(tmp_path).task_key()
    assert len(key) == 32
    assert StateDir(tmp_path).task_key() == key


@pytest.mark.parametrize(
    "content", [b'{"token": 5', b'{"token": "\xff"}'], ids=["cut", "not UTF-8"]
)
def test_damaged_file_is_named_with_a_remedy(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "node.json").write_bytes(content)
    with pytest.raises(SettingsError) as problem:
        StateDir(tmp_path).load()
    assert "node.json" in problem.value.message
    assert "join" in problem.value.fix


def test_folder_that_cannot_be_created_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError, match="cannot be used"), StateDir(tmp_path / "file").lock():
        pass


def test_two_clients_cannot_share_a_folder(tmp_path: Path) -> None:
    other = (
        "import sys; from pathlib import Path; from node_client.storage.state import StateDir\n"
        "with StateDir(Path(sys.argv[1])).lock():\n"
        "    print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", other, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        with pytest.raises(StateLockedError, match="Another swarm-node"), StateDir(tmp_path).lock():
            pass
        process.kill()
    # A client that was killed leaves no lock behind.
    with StateDir(tmp_path).lock():
        pass


def test_two_nodes_have_different_task_keys(tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "other"]
    for folder in folders:
        folder.mkdir()
    assert len({StateDir(folder).task_key() for folder in folders}) == 2
