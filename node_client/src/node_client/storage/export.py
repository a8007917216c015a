"""A checkpoint's model as a folder of its own: whole, or not there at all."""

import shutil
from pathlib import Path

from node_client.errors import SettingsError
from node_client.storage.durable import flush_tree
from node_client.storage.selection import Chosen

CARD = "README.md"


def export_model(chosen: Chosen, out: Path, *, card: str) -> None:
    """Write an ordinary transformers folder with a model card.

    Raises SettingsError when there is something at `out`, or it cannot be written.
    """
    if out.exists():
        raise SettingsError(
            f"{out} is there already, and nothing is overwritten.",
            fix="Choose another folder with --out, or remove that one.",
        )
    draft = out.with_name(f".{out.name}.partial")
    try:
        shutil.rmtree(draft, ignore_errors=True)
        shutil.copytree(chosen.model, draft)
        (draft / CARD).write_text(card, encoding="utf-8")
        flush_tree(draft)
        draft.rename(out)
    except OSError as problem:
        shutil.rmtree(draft, ignore_errors=True)
        raise SettingsError(
            f"{out} cannot be written: {problem.strerror or problem}.",
            fix="Choose another folder with --out, or free some space.",
        ) from problem
