"""Events of a running node: `--json` writes each one as a JSON object on a line.

The field `event` is the kind (the `tag` of the class) and `at` the time, ISO 8601 in UTC. Later
versions may add fields.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self

import msgspec
from msgspec import Struct, field

from node_client.storage.pauses import Reason
from swarm_protocol.messages import Arm


@dataclass(frozen=True)
class MemoryUse:
    """The memory that the process uses, in bytes: `process` in RAM, `accelerator` on the device.

    `accelerator` is None without an accelerator.
    """

    process: int
    accelerator: int | None = None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class Event(Struct, frozen=True, kw_only=True, tag_field="event"):
    """Base class of all events of a running node; `at` is the time, ISO 8601 in UTC."""

    at: str = field(default_factory=_now)

    @classmethod
    def of(cls, source: object, **others: Any) -> Self:
        """Return an event with the current time as `at` and the fields `others`.

        The remaining fields are copied from the attributes of `source`.
        """
        copied = {
            name: getattr(source, name)
            for name in cls.__struct_fields__
            if name != "at" and name not in others
        }
        return cls(**copied, **others)

    @property
    def moment(self) -> datetime:
        """The time `at` as a datetime."""
        return datetime.fromisoformat(self.at)


class Started(Event, frozen=True, kw_only=True, tag="started"):
    """The model is loaded. `site` is null for training without a coordinator.

    `client` is the version of the client, and `parameters` the number of the model's parameters.
    """

    client: str
    site: str | None
    model: str
    parameters: int
    device: str
    arm: Arm
    state_dir: str


class LinkChanged(Event, frozen=True, kw_only=True, tag="connection"):
    """The connection entered another phase: `connecting`, `connected` or `waiting`.

    `reason` says why a waiting node has no connection; it is empty in the other phases.
    """

    phase: str
    reason: str


class Joined(Event, frozen=True, kw_only=True, tag="joined"):
    """The coordinator welcomed this node. `season` is null while none is running."""

    node: str
    arm: Arm
    season: str | None


class StepDone(Event, frozen=True, kw_only=True, tag="step"):
    """A training step ended.

    These fields are means over the node's own rollouts of the step: `training_reward`,
    `completion_length` (tokens), `informative_share` (the share of rollouts whose completions have
    different rewards) and `clipped_ratio` (the share of completions that reached the length limit).
    `external_dropped` counts the external rollouts that failed a check or were not chosen, by
    reason. `held_out` is macro pass@1 on the held-out set after the step, null if the step had no
    complete evaluation. `memory` and `accelerator_memory` are in bytes; the second is null without
    an accelerator.
    """

    step: int
    training_reward: float
    informative_share: float
    local_used: int
    external_used: int
    external_dropped: dict[str, int]
    completion_length: float
    clipped_ratio: float
    seconds: float
    tokens_per_second: float
    held_out: float | None
    memory: int | None
    accelerator_memory: int | None


class RoundChanged(Event, frozen=True, kw_only=True, tag="round"):
    """Another round became the current one, or a field of the current round changed.

    `questions` is the number of the round's questions.
    """

    round: int
    phase: str
    opens_at: str
    closes_at: str
    questions: int


class AnswersAcknowledged(Event, frozen=True, kw_only=True, tag="answers"):
    """The judge stored answers.

    `acknowledged` is the number of this node's answers to the round so far, including those that it
    sent in earlier runs.
    """

    round: int
    acknowledged: int


class StandingChanged(Event, frozen=True, kw_only=True, tag="standing"):
    """This node's row of the leaderboard arrived, with fields of the protocol's NodeStanding.

    `score` and `interval` are null before the first scored round, `rank` is null for a node without
    a rank, and a count is null if the coordinator does not give it.
    """

    rank: tuple[int, int] | None
    ranked: int | None
    score: float | None
    interval: tuple[float, float] | None
    n: int
    rounds: int
    remark: str
    published: int | None
    delivered_to_others: int | None
    used_by_others: int | None
    external_used: int


class CheckpointSaved(Event, frozen=True, kw_only=True, tag="checkpoint"):
    """A checkpoint was written after step `step`. A later run can continue from the checkpoint."""

    step: int


class ProblemFound(Event, frozen=True, kw_only=True, tag="problem"):
    """An error: a `code` that does not change between versions, what happened, and what to do."""

    code: str
    message: str
    fix: str


class Noticed(Event, frozen=True, kw_only=True, tag="notice"):
    """Information for the owner that is not an error."""

    message: str


class Paused(Event, frozen=True, kw_only=True, tag="paused"):
    """The node pauses: it neither trains nor shares. `until` is ISO 8601, null if unknown."""

    reason: Reason
    message: str
    until: str | None


class Resumed(Event, frozen=True, kw_only=True, tag="resumed"):
    """The pause has ended."""


class Stopped(Event, frozen=True, kw_only=True, tag="stopped"):
    """The node ends. This is the last event.

    `step` is the last step that this run finished, null if it finished none.
    """

    step: int | None


EventListener = Callable[[Event], None]


def as_line(event: Event) -> str:
    """Return an event as one line of JSON, without a line break."""
    return msgspec.json.encode(event).decode()
