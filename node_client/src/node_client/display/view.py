"""The state of a running node, which the rest of the client updates and the panel shows."""

from collections import Counter, deque
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING

from node_client.display import events
from node_client.site import Site
from node_client.storage.pauses import Pause
from node_client.storage.state import Lifetime
from node_client.swarm.connection import ConnectionState
from swarm_protocol.errors import RefusedError
from swarm_protocol.messages import Arm, NodeStanding, RoundInfo, SeasonInfo

if TYPE_CHECKING:  # the trainer imports torch, which display alone does not need
    from node_client.learning.questions.held_out import HeldOutScore
    from node_client.learning.report import StepReport, TrainingTotals

CURVE_STEPS = 200
ROUNDS_SHOWN = 64
NOTICES = 3


@dataclass
class NodeView:
    """One node's state for its owner. Most `show_...` methods emit an event to all `listeners`.

    - `clock_ahead_s`: the coordinator's clock minus ours, in seconds.
    - `offline_since`: when the connection was lost, in seconds of the monotonic clock; None while
      connected.
    - `report`: the report of the latest step; `curve`: the training rewards of the latest steps;
      `held_out`: the latest score on the held-out set.
    - `totals`: the node's totals in this season; `lifetime`: its totals in all runs and seasons.
    - `published`: the number of rollouts that the pool accepted since the client started.
    - `published_before`: this season's number of published rollouts minus `published`. It is
      negative if some of `published` belong to an earlier season.
    - `unpublished`: the number of rollouts that were dropped unsent because the queue was full.
    - `answered`: for each of the latest rounds, by number, how many answers the judge stored.
      Answers that were sent in an earlier run count even if the judge refused them.
    - `finished_round`: the latest round that this client saw open and that is no longer open.
    - `skipped_round`: the number of the latest round that this node may not answer because it came
      late.
    - `upgrade`: the warning that this client will be refused soon, None if there is none.
    """

    model: str
    parameters: int
    device: str
    arm: Arm
    site: Site | None = None
    node: str = ""
    connection: ConnectionState | None = None
    offline_since: float | None = None
    season: SeasonInfo | None = None
    clock_ahead_s: float = 0.0
    report: "StepReport | None" = None
    totals: "TrainingTotals | None" = None
    held_out: "HeldOutScore | None" = None
    held_out_step: int = 0
    steps_this_run: int = 0
    curve: deque[float] = field(default_factory=lambda: deque(maxlen=CURVE_STEPS))
    resumed_step: int = 0
    saved: events.CheckpointSaved | None = None
    lifetime: Lifetime = field(default_factory=Lifetime)
    memory_use: events.MemoryUse | None = None
    published: int = 0
    published_before: int = 0
    unpublished: int = 0
    round: RoundInfo | None = None
    finished_round: RoundInfo | None = None
    answered: Counter[int] = field(default_factory=Counter)
    skipped_round: int | None = None
    standing: NodeStanding | None = None
    upgrade: str | None = None
    problem: events.ProblemFound | None = None
    notices: deque[events.Noticed] = field(default_factory=lambda: deque(maxlen=NOTICES))
    paused: Pause | None = None
    stopping: bool = False
    listeners: list[events.EventListener] = field(default_factory=list)

    @property
    def tokens_per_second(self) -> float:
        """The tokens sampled in the latest step, per second of the step; 0 before the first step.

        The seconds are those of the whole step without its evaluation, not of the sampling alone.
        """
        if self.report is None:
            return 0.0
        seconds = sum(s for part, s in self.report.seconds.items() if part != "evaluate")
        return self.report.completion_tokens / seconds if seconds else 0.0

    def emit(self, event: events.Event) -> None:
        """Pass an event to all listeners."""
        for listener in self.listeners:
            listener(event)

    def show_connection(self, connection: ConnectionState) -> None:
        """Show the state of the connection, and since when the node is offline."""
        if connection.phase == "connected":
            self.offline_since = None
        elif self.offline_since is None:
            self.offline_since = monotonic()
        self.connection = connection
        self.emit(events.LinkChanged(phase=connection.phase, reason=connection.reason))

    def show_welcome(self, node: str, arm: Arm, season: SeasonInfo | None) -> None:
        """Show the name and arm that the coordinator's welcome gives this node.

        The emitted event also has the season's name.
        """
        self.node, self.arm = node, arm
        name = season.name if season is not None else None
        self.emit(events.Joined(node=node, arm=arm, season=name))

    def show_step(self, report: "StepReport", totals: "TrainingTotals") -> None:
        """Show a finished training step; `totals` are the node's totals in the season."""
        self.report = report
        self.totals = totals
        self.steps_this_run += 1
        self.curve.append(report.training_reward)
        if report.held_out is not None:
            self.held_out, self.held_out_step = report.held_out, report.step
        memory = self.memory_use
        self.emit(
            events.StepDone.of(
                report,
                seconds=sum(report.seconds.values()),
                tokens_per_second=self.tokens_per_second,
                held_out=report.held_out.score if report.held_out is not None else None,
                memory=memory.process if memory is not None else None,
                accelerator_memory=memory.accelerator if memory is not None else None,
            )
        )

    def clear_training(self) -> None:
        """Clear the curve, the held-out score and the totals, before training in another season."""
        self.curve.clear()
        self.held_out, self.held_out_step = None, 0
        self.totals = None

    def show_season(self, season: SeasonInfo | None) -> None:
        """Show the season's rules; None means that no season is running.

        If the season shown before has ended, clear the node's standing and number of published
        rollouts.
        """
        previous, self.season = self.season, season
        if previous is not None and (season is None or season.name != previous.name):
            self.standing = None
            self.published_before = -self.published

    def show_round(self, current: RoundInfo | None) -> None:
        """Show the current round; None if there is none."""
        before, self.round = self.round, current
        if before == current:
            return
        if before is not None and before.phase == "open":
            is_open = current is not None and current.phase == "open"
            if current is None or current.number != before.number or not is_open:
                self.finished_round = before
        if current is not None:
            self.emit(events.RoundChanged.of(current, round=current.number))

    def show_answers(self, number: int, stored: int) -> None:
        """Show that the judge acknowledged `stored` more answers of round `number`."""
        self.answered[number] += stored
        acknowledged = self.answered[number]
        while len(self.answered) > ROUNDS_SHOWN:
            del self.answered[min(self.answered)]
        self.emit(events.AnswersAcknowledged(round=number, acknowledged=acknowledged))

    def show_standing(self, standing: NodeStanding) -> None:
        """Show this node's row of the leaderboard."""
        self.standing = standing
        if standing.published is not None:
            self.published_before = standing.published - self.published
        self.emit(events.StandingChanged.of(standing))

    def show_pause(self, pause: Pause | None) -> None:
        """Show why the node pauses and until when; None means that the pause has ended."""
        if pause == self.paused:
            return
        self.paused = pause
        if pause is None:
            self.offline_since = None  # the disconnection was intended
            self.emit(events.Resumed())
            return
        until = pause.until.isoformat(timespec="seconds") if pause.until is not None else None
        self.emit(events.Paused(reason=pause.reason, message=pause.why, until=until))

    def show_checkpoint(self, step: int) -> None:
        """Show that a checkpoint of this step was written now."""
        self.saved = events.CheckpointSaved(step=step)
        self.emit(self.saved)

    def show_refusal(self, refusal: RefusedError) -> None:
        """Show why the coordinator refused a request."""
        self.show_problem(refusal.code, refusal.message, refusal.fix)

    def show_problem(self, code: str, message: str, fix: str) -> None:
        """Show an error."""
        self.problem = events.ProblemFound(code=code, message=message, fix=fix)
        self.emit(self.problem)

    def show_notice(self, message: str) -> None:
        """Show information for the owner that is not an error."""
        self.notices.append(events.Noticed(message=message))
        self.emit(self.notices[-1])
