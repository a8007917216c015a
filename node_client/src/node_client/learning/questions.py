"""Which questions a node asks itself next: fresh ones of its stream, or old ones once more."""

from collections.abc import Sequence
from typing import Any

from node_client.learning.history import History
from node_client.learning.rollouts import LocalRollout
from node_client.learning.stream import TaskStream
from node_client.settings.train_config import TrainConfig
from swarm_protocol.messages import SeasonInfo, TaskSpec
from swarm_tasks.verifier import DrawnTask, Verifier


class Questions:
    """The node's stream of training questions with what its settings make of it."""

    def __init__(
        self, *, verifier: Verifier, season: SeasonInfo, config: TrainConfig, key: bytes
    ) -> None:
        self._verifier = verifier
        self._stream = TaskStream(verifier=verifier, season=season, key=key)
        self._history = (
            History(epoch_size=config.history_epoch, key=key)
            if config.resampling == "history"
            else None
        )

    def draw(self, count: int) -> list[DrawnTask]:
        """Return the next questions. Raises RefusedError when the verifier fails."""
        if self._history is None:
            return self._stream.draw(count)
        return [self._ask(place) for place in self._history.next_places(count)]

    def note(self, rollouts: Sequence[LocalRollout]) -> None:
        """Learn from how questions were answered which ones to ask."""
        for rollout in rollouts:
            solved = [verdict.solved for verdict in rollout.verdicts]
            if self._history is not None:
                self._history.note(rollout.task.spec, solved)

    def state(self) -> dict[str, Any]:
        """Return all that `load` needs, as plain values."""
        history = None if self._history is None else self._history.state()
        return {"counter": self._stream.counter, "history": history}

    def load(self, state: dict[str, Any], *, same_season: bool) -> None:
        """Go on from where `state` was taken; what was learned in another season is forgotten."""
        self._stream.counter = state["counter"]
        if same_season and self._history is not None and state["history"] is not None:
            self._history.load(state["history"])

    def _ask(self, spec: TaskSpec | None) -> DrawnTask:
        """Return an old question, made again, or a fresh one."""
        if spec is None:
            (fresh,) = self._stream.draw(1)
            return fresh
        return DrawnTask(spec, self._verifier.question(spec))
