"""Checkpoints: written completely or not at all, and verified before use.

The checkpoint of step 12 is a folder `step-00000012/`: the model in `policy/` (which `--model` can
read), the trainer's state in `trainer.json` and `trainer.safetensors`, other data of the run in
`run.json`, and the SHA-256 of every file in `manifest.json`. Nothing is pickled, so reading a
checkpoint from another source runs no code.
"""

import json
import logging
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from safetensors import SafetensorError

from node_client.errors import CheckpointError
from node_client.storage.durable import discard, flush, flush_tree
from node_client.storage.manifest import (
    FORMAT,
    DamagedError,
    Manifest,
    Merit,
    OutdatedError,
    check_files,
    digest_files,
    read_manifest,
    write_manifest,
)
from node_client.storage.tree import read_tree, write_tree

log = logging.getLogger(__name__)

# Default number of checkpoints to keep: if the newest is damaged, there is another.
MAX_CHECKPOINTS = 2
# Suffix of a checkpoint that is being replaced by another one of the same step.
_BEFORE = ".before"
_RUN = "run.json"
_NAME = re.compile(r"step-(\d+)(\.before)?")
# Prefix of an unreadable checkpoint, which is kept until the run has passed its step.
_DAMAGED = "damaged-"


class Weights(Protocol):
    """A model whose weights can be written and read."""

    @property
    def name(self) -> str: ...
    @property
    def parameters(self) -> int: ...
    @property
    def tokenizer_fingerprint(self) -> str: ...

    def save(self, folder: Path) -> None:
        """Write the model into `folder`, which is created."""

    def load_weights(self, folder: Path) -> None:
        """Load into this model the weights that `save` wrote to `folder`."""


class Resumable(Protocol):
    """A trainer: its model's weights, and the other state that a resumed run needs."""

    @property
    def policy(self) -> Weights: ...
    @property
    def steps_done(self) -> int: ...

    def state_dict(self) -> dict[str, Any]:
        """Return all state except the weights, in a form that `storage.tree.write_tree` accepts."""

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore a state that `state_dict` returned."""


@dataclass(frozen=True)
class ResumePoint:
    """The step after which a run resumes, 0 if all checkpoints are damaged.

    `problems` describes each damaged checkpoint that was skipped. `run` is the argument `run` of
    `save`, read back from JSON; it is empty if all checkpoints are damaged.
    """

    step: int
    problems: list[str]
    run: dict[str, Any] = field(default_factory=dict)


def save(
    folder: Path,
    trainer: Resumable,
    *,
    run: Mapping[str, Any] | None = None,
    merit: Merit | None = None,
    limit: int = MAX_CHECKPOINTS,
) -> Path:
    """Write the trainer's state as the newest checkpoint in `folder` and return its path.

    `run` is other data of the run that JSON can represent. `merit` is the model's score, if it has
    one. A crash leaves either the complete checkpoint or none, because the files are written under
    another name, flushed to disk and then renamed.

    Afterwards, older checkpoints are removed. The new one and the newest `limit` - 1 others remain,
    and so does the one with the best merit. Raises OSError if writing fails, for example because
    the disk is full. Raises RuntimeError or MemoryError if memory runs out.
    """
    _sweep(folder)
    target = folder / f"step-{trainer.steps_done:08d}"
    draft = folder / f".{target.name}.partial"
    try:
        _write(draft, trainer, run=run or {}, merit=merit)
    except (OSError, RuntimeError, MemoryError, SafetensorError) as problem:
        shutil.rmtree(draft, ignore_errors=True)  # frees its space
        if isinstance(problem, SafetensorError):  # for a full disk
            raise OSError(str(problem)) from problem
        raise
    if target.exists():
        # Under this name it is still a checkpoint, if the process is killed before the next line.
        target.rename(folder / f"{target.name}{_BEFORE}")
    draft.rename(target)
    flush(folder)
    _rotate(target, limit=limit)
    return target


def _write(draft: Path, trainer: Resumable, *, run: Mapping[str, Any], merit: Merit | None) -> None:
    """Write a checkpoint into the new folder `draft`, and wait until it is on the disk."""
    draft.mkdir(parents=True)
    trainer.policy.save(draft / "policy")
    write_tree(draft, "trainer", trainer.state_dict())
    (draft / _RUN).write_text(json.dumps(dict(run)), encoding="utf-8")
    manifest = Manifest(
        format=FORMAT,
        step=trainer.steps_done,
        model=trainer.policy.name,
        parameters=trainer.policy.parameters,
        tokenizer=trainer.policy.tokenizer_fingerprint,
        files=digest_files(draft),
        merit=merit,
    )
    write_manifest(draft, manifest)
    flush_tree(draft)


def resume(folder: Path, trainer: Resumable) -> ResumePoint | None:
    """Load the newest intact checkpoint in `folder` into the trainer; return its ResumePoint.

    Damaged checkpoints are skipped. The result describes them in `problems`, and they are renamed
    so that later runs ignore them. If all checkpoints are damaged, the trainer is not changed and
    the result has `step` 0. If the folder has no checkpoints at all, returns None.

    Raises CheckpointError if the newest checkpoint that is not damaged belongs to another model, or
    has the format of another client version.
    """
    problems: list[str] = []
    for path in newest_first(folder):
        try:
            manifest = read_manifest(path)
            check_files(path, manifest)
            state = read_tree(path, "trainer")
            run = json.loads((path / _RUN).read_text(encoding="utf-8"))
        except OutdatedError:
            raise _outdated(path) from None
        except (DamagedError, OSError, ValueError, KeyError, SafetensorError) as problem:
            problems.append(f"Checkpoint {path.name} is damaged and was skipped: {problem}")
            _set_aside(path)
            continue
        _check_model(path, manifest, trainer)
        trainer.policy.load_weights(path / "policy")
        trainer.load_state(state)
        return ResumePoint(step=trainer.steps_done, problems=problems, run=run)
    return ResumePoint(step=0, problems=problems) if problems else None


def newest_first(folder: Path) -> list[Path]:
    """Return the checkpoints in a folder, intact or not, the newest first."""
    found = [
        (int(match[1]), match[2] is None, path)
        for path in folder.glob("step-*")
        if (match := _NAME.fullmatch(path.name))
    ]
    return [path for _, _, path in sorted(found, reverse=True)]


def _sweep(folder: Path) -> None:
    """Remove what a crash left: partial checkpoints, and ones that were replaced or discarded."""
    for leftover in (*folder.glob(".step-*"), *folder.glob(f".{_DAMAGED}step-*")):
        shutil.rmtree(leftover, ignore_errors=True)
    for replaced in folder.glob(f"step-*{_BEFORE}"):
        if replaced.with_name(replaced.name.removesuffix(_BEFORE)).exists():
            discard(replaced)


def _set_aside(damaged: Path) -> None:
    """Rename a damaged checkpoint so that later runs ignore it. Logs a warning on failure."""
    aside = damaged.with_name(f"{_DAMAGED}{damaged.name}")
    try:
        if aside.exists():
            discard(aside)
        damaged.rename(aside)
    except OSError as problem:
        log.warning("%s could not be renamed: %s", damaged, problem)


def _rotate(written: Path, *, limit: int) -> None:
    """Remove all checkpoints but `written`, the newest `limit` - 1 others and the best one.

    Also removes checkpoints that `_set_aside` renamed, unless their step is later than that of
    `written`.
    """
    found = newest_first(written.parent)
    others = [path for path in found if path != written and not path.name.endswith(_BEFORE)]
    kept = {written, *others[: limit - 1], _best(found)}
    passed = (path for path in written.parent.glob(f"{_DAMAGED}*") if _is_passed(path, written))
    for path in (*found, *passed):
        if path not in kept:
            discard(path)


def _is_passed(damaged: Path, written: Path) -> bool:
    match = _NAME.fullmatch(damaged.name.removeprefix(_DAMAGED))
    newest = _NAME.fullmatch(written.name)
    return match is not None and newest is not None and int(match[1]) <= int(newest[1])


def _best(checkpoints: Sequence[Path]) -> Path | None:
    """Return the checkpoint with the highest merit (`Merit`), or None if none has a merit.

    Only merits of the same kind and season as the newest merit are compared. Checkpoints with an
    unreadable manifest are skipped. `checkpoints` must be sorted, newest first.
    """
    rated: list[tuple[Merit, Path]] = []
    for path in checkpoints:
        try:
            merit = read_manifest(path).merit
        except (DamagedError, OutdatedError):
            continue
        if merit is not None and (not rated or merit.is_like(rated[0][0])):
            rated.append((merit, path))
    return max(rated, key=lambda pair: pair[0].value)[1] if rated else None


def _check_model(path: Path, manifest: Manifest, trainer: Resumable) -> None:
    policy = trainer.policy
    here = (policy.parameters, policy.tokenizer_fingerprint)
    if (manifest.parameters, manifest.tokenizer) != here:
        raise CheckpointError(
            f"{path} was trained from {manifest.model}, but this run uses {policy.name}.",
            fix=f"Use --model {manifest.model} again, another --state-dir, or --fresh to start at "
            "step 1; --fresh keeps the earlier checkpoints in a separate folder.",
        )


def _outdated(path: Path) -> CheckpointError:
    aside = path.parent.with_name(f"{path.parent.name}-of-before")
    return CheckpointError(
        f"{path} was written by another version of swarm-node, whose format this one cannot read.",
        fix=f"Rename the folder {path.parent} to {aside} and continue with the weights by "
        f"--model {aside / path.name / 'policy'}: the node keeps its name and starts at step 1.",
    )
