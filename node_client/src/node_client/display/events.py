"""What a running node tells machines: `--json` writes one of these as a JSON object on each line.

`event` names the kind and `at` is when it happened, ISO 8601 in UTC. Fields may be added.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct, field

from node_client.storage.pauses import Reason
from swarm_protocol.messages import Arm, RoundInfo, Standing

if TYPE_CHECKING:  # the trainer imports torch; whoever only shows figures need not wait for it
    from node_client.learning.report import StepReport


@dataclass(frozen=True)
class Vitals:
    """Memory in bytes: of the process, and what it holds on its accelerator, if it has one."""

    memory: int
    accelerator: int | None = None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class Event(Struct, frozen=True, kw_only=True, tag_field="event"):
    """Something that happened to the node."""

    at: str = field(default_factory=_now)


class Started(Event, frozen=True, kw_only=True, tag="started"):
    """The model is loaded. `site` is null for training without a coordinator."""

    client: str
    site: str | None
    model: str
    parameters: int
    device: str
    arm: Arm
    state_dir: str


class LinkChanged(Event, frozen=True, kw_only=True, tag="connection"):
    """The connection came, went or is tried again. `reason` says why it waits."""

    phase: str
    reason: str


class Joined(Event, frozen=True, kw_only=True, tag="joined"):
    """The coordinator welcomed this node. `season` is null while none is running."""

    node: str
    arm: Arm
    season: str | None


class StepDone(Event, frozen=True, kw_only=True, tag="step"):
    """A training step ended; rewards and shares are over the node's own rollouts of it.

    `external_dropped` counts rollouts of others by the reason why they were not used in this step.
    `held_out` is macro pass@1 after the step, null where none was due. Memory is in bytes; null for
    the accelerator where there is none.
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

    @classmethod
    def of(
        cls, report: "StepReport", *, tokens_per_second: float, vitals: Vitals | None
    ) -> "StepDone":
        """Return the event of a step."""
        return cls(
            step=report.step,
            training_reward=report.training_reward,
            informative_share=report.informative_share,
            local_used=report.local_used,
            external_used=report.external_used,
            external_dropped=report.external_dropped,
            completion_length=report.completion_length,
            clipped_ratio=report.clipped_ratio,
            seconds=sum(report.seconds.values()),
            tokens_per_second=tokens_per_second,
            held_out=report.held_out.score if report.held_out is not None else None,
            memory=vitals.memory if vitals is not None else None,
            accelerator_memory=vitals.accelerator if vitals is not None else None,
        )


class RoundChanged(Event, frozen=True, kw_only=True, tag="round"):
    """The judge's current round is another one, or in another phase."""

    round: int
    phase: str
    opens_at: str
    closes_at: str
    questions: int

    @classmethod
    def of(cls, current: RoundInfo) -> "RoundChanged":
        """Return the event of a round."""
        return cls(
            round=current.number,
            phase=current.phase,
            opens_at=current.opens_at,
            closes_at=current.closes_at,
            questions=current.questions,
        )


class AnswersAcknowledged(Event, frozen=True, kw_only=True, tag="answers"):
    """The judge stored answers. `acknowledged` counts those of the round, of earlier runs too."""

    round: int
    acknowledged: int


class StandingTold(Event, frozen=True, kw_only=True, tag="standing"):
    """The coordinator told this node's row of the leaderboard; null figures as long as none is."""

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

    @classmethod
    def of(cls, standing: Standing) -> "StandingTold":
        """Return the event of a standing."""
        told = {name: getattr(standing, name) for name in cls.__struct_fields__ if name != "at"}
        return cls(**told)


class CheckpointSaved(Event, frozen=True, kw_only=True, tag="checkpoint"):
    """A checkpoint was written; killed from now on, the node goes on after this step."""

    step: int


class ProblemFound(Event, frozen=True, kw_only=True, tag="problem"):
    """Something went wrong: what, and what to do. `code` is stable."""

    code: str
    message: str
    fix: str


class Noticed(Event, frozen=True, kw_only=True, tag="notice"):
    """Something that is no problem, but that the owner should know."""

    message: str


class Paused(Event, frozen=True, kw_only=True, tag="paused"):
    """The node trains and shares no more for now. `until` is ISO 8601, null if nobody knows."""

    reason: Reason
    message: str
    until: str | None


class Resumed(Event, frozen=True, kw_only=True, tag="resumed"):
    """The pause is over."""


class Stopped(Event, frozen=True, kw_only=True, tag="stopped"):
    """The node ends; the last line. `step` is null if it made none."""

    step: int | None


Listener = Callable[[Event], None]


def ignore(event: Event) -> None:
    """Listen to nothing."""


def tell_both(first: Listener, second: Listener) -> Listener:
    """Return a listener that passes each event on to two."""

    def listen(event: Event) -> None:
        first(event)
        second(event)

    return listen


def as_line(event: Event) -> str:
    """Return an event as one line of JSON, without a line break."""
    return msgspec.json.encode(event).decode()
