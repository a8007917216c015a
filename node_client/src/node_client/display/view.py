"""What a person wants to know about a running node: filled by its parts, shown by the panel."""

from collections import Counter, deque
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from node_client.site import Site
from node_client.swarm.connection import Link
from swarm_protocol.errors import RefusedError
from swarm_protocol.messages import Arm, RoundInfo, SeasonInfo, Standing

if TYPE_CHECKING:  # the trainer imports torch; whoever only shows figures need not wait for it
    from node_client.learning.report import StepReport, Totals

CURVE_STEPS = 200


@dataclass(frozen=True)
class Problem:
    """The latest thing that went wrong, and what to do about it."""

    code: str
    message: str
    fix: str
    at: datetime


@dataclass
class View:
    """One node's state as its owner sees it. `clock_ahead_s` is the coordinator's clock minus ours.

    `totals` are this season's; `curve` holds the training reward of the latest steps. `sat_out` is
    the latest round that this node came too late for. `upgrade` names the client version below
    which nodes will be refused soon, if this one is older.
    """

    model: str
    parameters: int
    device: str
    arm: Arm
    site: Site | None = None
    node: str = ""
    link: Link | None = None
    season: SeasonInfo | None = None
    clock_ahead_s: float = 0.0
    report: "StepReport | None" = None
    totals: "Totals | None" = None
    steps_here: int = 0
    curve: deque[float] = field(default_factory=lambda: deque(maxlen=CURVE_STEPS))
    resumed_step: int = 0
    published: int = 0
    unpublished: int = 0
    round: RoundInfo | None = None
    answered: Counter[int] = field(default_factory=Counter)
    sat_out: int | None = None
    standing: Standing | None = None
    upgrade: str | None = None
    problem: Problem | None = None
    stopping: bool = False

    def note_step(self, report: "StepReport", totals: "Totals") -> None:
        """Show a finished training step."""
        self.report = report
        self.totals = totals
        self.steps_here += 1
        self.curve.append(report.training_reward)

    def note_answers(self, number: int, stored: int) -> None:
        """Show that the judge holds more of this round's answers."""
        self.answered[number] += stored

    def note_refusal(self, refusal: RefusedError) -> None:
        """Show why the coordinator declined something."""
        self.note_problem(refusal.code, refusal.message, refusal.fix)

    def note_problem(self, code: str, message: str, fix: str) -> None:
        """Show what went wrong."""
        self.problem = Problem(code=code, message=message, fix=fix, at=datetime.now(UTC))
