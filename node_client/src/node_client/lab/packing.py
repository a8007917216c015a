"""Finished runs as compressed files, which are fit to be kept in a repository."""

import gzip
from pathlib import Path

from node_client.storage.durable import flush

LEVEL = 9


def pack(folder: Path) -> list[Path]:
    """Compress a folder's finished runs in place and return the new files.

    The same run gives the same bytes: no time and no name is kept in them.
    """
    packed = []
    for whole in sorted((folder / "runs").glob("*.jsonl")):
        small = whole.with_suffix(".jsonl.gz")
        draft = small.with_suffix(".partial")
        draft.write_bytes(gzip.compress(whole.read_bytes(), LEVEL, mtime=0))
        flush(draft)
        draft.rename(small)
        whole.unlink()
        whole.with_suffix(".lock").unlink(missing_ok=True)
        packed.append(small)
    return packed
