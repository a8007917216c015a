"""History resampling: mastered questions are dropped, the others are asked again.

SRPO (arXiv 2504.14286, section on history resampling) records the rewards of all completions of an
epoch. At the end of the epoch, prompts that all completions solved are dropped, because they no
longer give an advantage. Prompts with mixed results, and prompts that no completion solved, are
asked again in the next epoch.

Differences from the paper: a season does not run out of questions, so an epoch is a fixed number of
questions, and new ones replace the dropped ones. With a ladder, an old question is also dropped
when its difficulty is not that of the present rung.

When a curriculum begins a new stage, all old questions are dropped. The paper does the same when
its second set of data begins.

This module uses neither the verifier nor the model.
"""

import random
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from swarm_protocol.messages import TaskSpec


class QuestionHistory:
    """Choice between new questions and old ones, that is, questions to be asked again.

    A question is asked again if at least one of its latest completions was wrong.
    """

    def __init__(self, *, epoch_size: int, key: bytes) -> None:
        self._epoch_size = epoch_size
        self._key = key
        self.epoch = 0
        self._places: list[TaskSpec | None] = [None] * epoch_size
        self._kept: list[TaskSpec] = []
        self._pending: list[TaskSpec] = []

    def next_specs(self, count: int) -> list[TaskSpec | None]:
        """Return the specs of the next `count` questions; None stands for a new question.

        If fewer than `count` questions of the epoch are left, new questions fill the batch. The
        next epoch does not begin within a batch, because it depends on all results of this epoch.
        A batch has failed if its results were not recorded; its old questions then come first in
        the next batch, except those that `exclude` dropped.
        """
        self._places, self._pending = [*self._pending, *self._places], []
        if not self._places:
            self._begin_epoch()
        places, self._places = self._places[:count], self._places[count:]
        self._pending = [spec for spec in places if spec is not None]
        return places + [None] * (count - len(places))

    def exclude(self, spec: TaskSpec) -> None:
        """Drop this old question, so that it is not asked again if the latest batch fails."""
        if spec in self._pending:
            self._pending.remove(spec)

    def record(self, spec: TaskSpec, solved: Sequence[bool]) -> None:
        """Record which completions of a question were right.

        If any completion was wrong, the question is asked again in the next epoch, unless earlier
        questions already fill that epoch.
        """
        self.exclude(spec)
        if not all(solved):
            self._kept.append(spec)

    def forget(self, is_past: Callable[[TaskSpec], bool]) -> None:
        """Drop the old questions for which `is_past` is true; new ones are asked in their place."""
        self._kept = [spec for spec in self._kept if not is_past(spec)]
        self._places = [spec if spec and not is_past(spec) else None for spec in self._places]

    def state(self) -> Any:
        """Return what `load` needs, as plain values."""
        places = [*self._pending, *self._places]
        return msgspec.to_builtins({"epoch": self.epoch, "places": places, "kept": self._kept})

    def load(self, state: Any) -> None:
        """Continue from a saved `state`. Raises msgspec.ValidationError if it is malformed."""
        self.epoch = msgspec.convert(state["epoch"], int)
        self._places = msgspec.convert(state["places"], list[TaskSpec | None])
        self._kept = msgspec.convert(state["kept"], list[TaskSpec])
        self._pending = []

    def _begin_epoch(self) -> None:
        self.epoch += 1
        kept, self._kept = self._kept[: self._epoch_size], []
        self._places = [*kept, *[None] * (self._epoch_size - len(kept))]
        random.Random(f"{self._key.hex()}:epoch:{self.epoch}").shuffle(self._places)
