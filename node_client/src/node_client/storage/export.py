"""A checkpoint's model as a folder of its own: whole, or not there at all."""

import shutil
from collections.abc import Callable
from pathlib import Path

from node_client.errors import NodeError, SettingsError
from node_client.storage.durable import flush_tree
from node_client.storage.selection import Chosen

CARD = "README.md"
# What peft writes beside adapters: such a folder is no whole model.
ADAPTER_CONFIG = "adapter_config.json"


def export_model(
    chosen: Chosen,
    out: Path,
    *,
    card: str,
    write: Callable[[Path, Path], object] = shutil.copytree,
) -> None:
    """Write an ordinary transformers folder with a model card.

    `write` makes one folder of another; it is not a mere copy where adapters are to be merged.

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
        write(chosen.model, draft)
        (draft / CARD).write_text(card, encoding="utf-8")
        flush_tree(draft)
        draft.rename(out)
    except NodeError:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    except OSError as problem:
        shutil.rmtree(draft, ignore_errors=True)
        raise SettingsError(
            f"{out} cannot be written: {problem.strerror or problem}.",
            fix="Choose another folder with --out, or free some space.",
        ) from problem
