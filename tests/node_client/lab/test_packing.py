import gzip
from pathlib import Path

from node_client.lab.records import pack_runs
from tests.node_client.lab.folders import LabFolder


def make_folder(path: Path) -> LabFolder:
    lab = LabFolder(path, seeds=[1])
    lab.add_all({"8/0": [0.1, 0.2]})
    return lab


def test_packed_run_counts_as_done_and_contains_the_same_lines(tmp_path: Path) -> None:
    run = make_folder(tmp_path).run("8/0", 1)
    lines = run.complete_file.read_bytes()
    assert pack_runs(tmp_path) == [tmp_path / "runs" / "8-0-1.jsonl.gz"]
    assert not run.complete_file.exists()
    assert run.finished_file is not None
    assert gzip.decompress(pack_of(tmp_path)) == lines


def test_same_run_packs_to_the_same_bytes_in_every_folder(tmp_path: Path) -> None:
    for name in ("one", "two"):
        make_folder(tmp_path / name)
        pack_runs(tmp_path / name)
    one, two = pack_of(tmp_path / "one"), pack_of(tmp_path / "two")
    assert one == two
    # Bytes 4 to 8 of a gzip file are its time stamp.
    assert one[4:8] == bytes(4)


def test_unfinished_run_is_not_packed(tmp_path: Path) -> None:
    run = make_folder(tmp_path).run("4/4", 1)
    run.partial_file.write_bytes(b"half a run")
    pack_runs(tmp_path)
    assert run.partial_file.read_bytes() == b"half a run"
    assert run.finished_file is None


def pack_of(folder: Path) -> bytes:
    return (folder / "runs" / "8-0-1.jsonl.gz").read_bytes()
