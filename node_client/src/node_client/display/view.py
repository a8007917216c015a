"""What a person wants to know about a running node: filled by its parts, shown by the panel."""

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from time import monotonic
from typing import TYPE_CHECKING

from node_client.display import events
from node_client.site import Site
from node_client.storage.pauses import Pause
from node_client.storage.state import Lifetime
from node_client.swarm.connection import Link
from swarm_protocol.errors import RefusedError
from swarm_protocol.messages import Arm, RoundInfo, SeasonInfo, Standing

if TYPE_CHECKING:  # the trainer imports torch; whoever only shows figures need not wait for it
    from node_client.learning.questions.held_out import HeldOutScore
    from node_client.learning.report import StepReport, TrainingTotals

CURVE_STEPS = 200
ROUNDS_SHOWN = 64
NOTICES = 3


@dataclass(frozen=True)
class Problem:
    """The latest thing that went wrong, and what to do about it."""

    code: str
    message: str
    fix: str
    at: datetime


@dataclass(frozen=True)
class Notice:
    """Something that is no problem, but that the owner should know."""

    message: str
    at: datetime


@dataclass(frozen=True)
class Mark:
    """A step at which something was done, and when."""

    step: int
    at: datetime


@dataclass
class View:
    """One node's state as its owner sees it. `clock_ahead_s` is the coordinator's clock minus ours.

    `totals` are this season's, `lifetime` those of all runs and seasons; `curve` holds the training
    reward of the latest steps. `answered` counts the latest rounds' answers that the judge holds,
    also those of an earlier run.
    `finished` is the latest round that was seen open and is not any more; `sat_out` the latest one
    that this node came too late for. `offline_since` is the monotonic time at which the connection
    was lost. `paused` tells why the node does nothing for now, and what ends that. `published`
    counts what the pool took since the client began, `published_before` what it had taken in this
    season before that. `upgrade` says that this client will be refused soon, if it will. `listen`
    is told what happens.
    """

    model: str
    parameters: int
    device: str
    arm: Arm
    site: Site | None = None
    node: str = ""
    link: Link | None = None
    offline_since: float | None = None
    season: SeasonInfo | None = None
    clock_ahead_s: float = 0.0
    report: "StepReport | None" = None
    totals: "TrainingTotals | None" = None
    held_out: "HeldOutScore | None" = None
    held_out_step: int = 0
    steps_here: int = 0
    curve: deque[float] = field(default_factory=lambda: deque(maxlen=CURVE_STEPS))
    resumed_step: int = 0
    saved: Mark | None = None
    lifetime: Lifetime = field(default_factory=Lifetime)
    vitals: events.Vitals | None = None
    published: int = 0
    published_before: int = 0
    unpublished: int = 0
    round: RoundInfo | None = None
    finished: RoundInfo | None = None
    answered: Counter[int] = field(default_factory=Counter)
    sat_out: int | None = None
    standing: Standing | None = None
    upgrade: str | None = None
    problem: Problem | None = None
    notices: deque[Notice] = field(default_factory=lambda: deque(maxlen=NOTICES))
    paused: Pause | None = None
    stopping: bool = False
    listen: events.Listener = events.ignore

    @property
    def tokens_per_second(self) -> float:
        """How many tokens the node samples in a second of training, evaluation left out."""
        if self.report is None:
            return 0.0
        seconds = sum(s for part, s in self.report.seconds.items() if part != "evaluate")
        return self.report.completion_tokens / seconds if seconds else 0.0

    def note_link(self, link: Link) -> None:
        """Show how the connection is."""
        if link.phase == "connected":
            self.offline_since = None
        elif self.offline_since is None:
            self.offline_since = monotonic()
        self.link = link
        self.listen(events.LinkChanged(phase=link.phase, reason=link.reason))

    def note_welcome(self, node: str, arm: Arm, season: SeasonInfo | None) -> None:
        """Show what the coordinator calls this node, and its arm."""
        self.node, self.arm = node, arm
        name = season.name if season is not None else None
        self.listen(events.Joined(node=node, arm=arm, season=name))

    def note_step(self, report: "StepReport", totals: "TrainingTotals") -> None:
        """Show a finished training step."""
        self.report = report
        self.totals = totals
        self.steps_here += 1
        self.curve.append(report.training_reward)
        if report.held_out is not None:
            self.held_out, self.held_out_step = report.held_out, report.step
        self.listen(
            events.StepDone.of(report, tokens_per_second=self.tokens_per_second, vitals=self.vitals)
        )

    def recall_rewards(self, rewards: Sequence[float]) -> None:
        """Show the curve of the season's steps in earlier runs, which this one goes on from."""
        self.curve.extend(rewards)

    def forget_training(self) -> None:
        """Show no curve, evaluation or totals any more: training goes on in another season."""
        self.curve.clear()
        self.held_out, self.held_out_step = None, 0
        self.totals = None

    def note_season(self, season: SeasonInfo | None) -> None:
        """Show the season's rules, and nothing that the coordinator told about another season."""
        known, self.season = self.season, season
        if known is not None and (season is None or season.name != known.name):
            self.standing = None
            self.published_before = -self.published

    def note_round(self, current: RoundInfo | None) -> None:
        """Show where the judge's current round stands."""
        before, self.round = self.round, current
        if before == current:
            return
        if before is not None and before.phase == "open":
            is_open = current is not None and current.phase == "open"
            if current is None or current.number != before.number or not is_open:
                self.finished = before
        if current is not None:
            self.listen(events.RoundChanged.of(current))

    def note_answers(self, number: int, stored: int) -> None:
        """Show that the judge holds more of this round's answers."""
        self.answered[number] += stored
        acknowledged = self.answered[number]
        while len(self.answered) > ROUNDS_SHOWN:
            del self.answered[min(self.answered)]
        self.listen(events.AnswersAcknowledged(round=number, acknowledged=acknowledged))

    def note_standing(self, standing: Standing) -> None:
        """Show this node's row of the leaderboard."""
        self.standing = standing
        if standing.published is not None:
            self.published_before = standing.published - self.published
        self.listen(events.StandingTold.of(standing))

    def note_pause(self, pause: Pause | None) -> None:
        """Show why the node pauses and until when, or with None that it goes on."""
        if pause == self.paused:
            return
        self.paused = pause
        if pause is None:
            self.offline_since = None  # it was away on purpose
            self.listen(events.Resumed())
            return
        until = pause.until.isoformat(timespec="seconds") if pause.until is not None else None
        self.listen(events.Paused(reason=pause.reason, message=pause.why, until=until))

    def note_checkpoint(self, step: int) -> None:
        """Show that a checkpoint was written."""
        self.saved = Mark(step=step, at=datetime.now(UTC))
        self.listen(events.CheckpointSaved(step=step))

    def note_refusal(self, refusal: RefusedError) -> None:
        """Show why the coordinator declined something."""
        self.note_problem(refusal.code, refusal.message, refusal.fix)

    def note_problem(self, code: str, message: str, fix: str) -> None:
        """Show what went wrong."""
        self.problem = Problem(code=code, message=message, fix=fix, at=datetime.now(UTC))
        self.listen(events.ProblemFound(code=code, message=message, fix=fix))

    def note_notice(self, message: str) -> None:
        """Show something that is no problem, but that the owner should know."""
        self.notices.append(Notice(message=message, at=datetime.now(UTC)))
        self.listen(events.Noticed(message=message))
