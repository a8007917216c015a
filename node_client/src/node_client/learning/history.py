"""History resampling: questions that a node has mastered are dropped, the others come again.

SRPO (arXiv 2504.14286, section on history resampling): the rewards of all completions of an epoch
are recorded; at its end, prompts that all completions solved are dropped, because they no longer
give an advantage, while those with mixed results and those that no completion solved are asked
again in the next epoch.

Where this departs from the paper, and why: a season's questions do not end, so an epoch is a number
of questions, and fresh ones take the places of those that were dropped. The rule is applied to each
question by itself; as a question belongs to one dataset in one difficulty, what a node has mastered
gives up its places to what it has not. Where a curriculum leaves a stage, as the paper does between
its two sets of data, or a difficulty, the old questions of it are dropped.

Pure: no verifier, no model.
"""

import random
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from swarm_protocol.messages import TaskSpec


class _Saved(Struct):
    """What a checkpoint holds of the history."""

    epoch: int
    places: list[TaskSpec | None]
    kept: list[TaskSpec]


class History:
    """Says which of the next questions are old ones. At most two epochs of specs are held."""

    def __init__(self, *, epoch_size: int, key: bytes) -> None:
        self._epoch_size = epoch_size
        self._key = key
        self.epoch = 0
        self._places: list[TaskSpec | None] = [None] * epoch_size
        self._kept: list[TaskSpec] = []
        self._given: list[TaskSpec] = []

    def next_places(self, count: int) -> list[TaskSpec | None]:
        """Return what the next questions are: an old one's spec, or None for a fresh one.

        An epoch ends before a batch, never in one, so that all its results are known by then; a
        batch that reaches beyond the epoch is filled with fresh questions. Old questions that were
        given out before and never noted come first: their batch failed.
        """
        self._places, self._given = [*self._given, *self._places], []
        if not self._places:
            self._begin_epoch()
        places, self._places = self._places[:count], self._places[count:]
        self._given = [spec for spec in places if spec is not None]
        return places + [None] * (count - len(places))

    def give_up(self, spec: TaskSpec) -> None:
        """Let a question that was given out not come again: its batch failed because of it."""
        if spec in self._given:
            self._given.remove(spec)

    def note(self, spec: TaskSpec, solved: Sequence[bool]) -> None:
        """Record which completions of a question were right."""
        self.give_up(spec)
        if not all(solved):
            self._kept.append(spec)

    def forget(self, is_past: Callable[[TaskSpec], bool]) -> None:
        """Drop old questions that would not be asked now; fresh ones take their places."""
        self._kept = [spec for spec in self._kept if not is_past(spec)]
        self._places = [spec if spec and not is_past(spec) else None for spec in self._places]

    def state(self) -> Any:
        """Return all that `load` needs, as plain values."""
        return msgspec.to_builtins(_Saved(self.epoch, [*self._given, *self._places], self._kept))

    def load(self, state: Any) -> None:
        """Go on from where `state` was taken. Raises msgspec.ValidationError."""
        saved = msgspec.convert(state, _Saved)
        self.epoch, self._places, self._kept = saved.epoch, saved.places, saved.kept
        self._given = []

    def _begin_epoch(self) -> None:
        self.epoch += 1
        kept, self._kept = self._kept[: self._epoch_size], []
        self._places = [*kept, *[None] * (self._epoch_size - len(kept))]
        random.Random(f"{self._key.hex()}:epoch:{self.epoch}").shuffle(self._places)
