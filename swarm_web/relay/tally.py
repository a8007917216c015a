"""Counts and reports of nodes since they were last written to the stores; no I/O.

A message of a node only changes numbers in memory. Every few seconds the hub takes these numbers:
it writes contributions and points to Postgres (`relay.services.folding`) and deliveries to Redis,
and sends credits to the worker (`relay.credits`).
"""

from collections import Counter
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

import msgspec

from swarm_protocol.errors import ErrorCode
from swarm_protocol.messages import ReportTraining

# Minimum interval between two points of a node's chart.
POINT_EVERY_S = 180.0

# While a store is down: hours of data of hundreds of nodes; then only the latest is kept.
MAX_POINTS = 20_000
MAX_PAIRS = 200_000
MAX_LESSONS = 50_000

# Codes of messages that no client sends, except for the few of newer clients that are unknown here.
UNREADABLE = frozenset(
    {
        ErrorCode.PROTOCOL_NOT_JSON,
        ErrorCode.PROTOCOL_TOO_LARGE,
        ErrorCode.PROTOCOL_UNKNOWN_TYPE,
        ErrorCode.PROTOCOL_INVALID,
    }
)

# Fields of `Change`: numbers that are added up, totals in reports, and evidence of conduct.
COUNTS = ("published", "rejected", "delivered")
TOTALS = ("step", "local_used", "external_used")
EVIDENCE = ("refused", "copies", "hurried", "floods")

# season id, node id
SeasonNode = tuple[int, int]


@dataclass(slots=True)
class Change:
    """Additions to one node's contribution to a season, and its latest report.

    `step`, `local_used` and `external_used` are running totals that the node reports. For each, the
    largest reported value is kept, so a repeated or late report does not change it.
    """

    published: int = 0
    rejected: int = 0
    delivered: int = 0
    report: ReportTraining | None = None
    step: int = 0
    local_used: int = 0
    external_used: int = 0
    # Evidence of conduct. Refused rollouts and copies are counted in `rejected` too.
    refused: int = 0
    copies: int = 0
    hurried: int = 0
    floods: int = 0

    def add_report(self, report: ReportTraining) -> None:
        """Replace the report; each field of TOTALS keeps its old value if that is larger."""
        self.report = report
        self.step = max(self.step, report.step)
        self.local_used = max(self.local_used, report.local_used)
        self.external_used = max(self.external_used, report.external_used)

    def merge_into(self, later: "Change") -> None:
        """Add this change to a newer one, `later`; if both have a report, keep the newer report."""
        for name in COUNTS + EVIDENCE:
            setattr(later, name, getattr(later, name) + getattr(self, name))
        for name in TOTALS:
            setattr(later, name, max(getattr(later, name), getattr(self, name)))
        later.report = later.report or self.report

    @property
    def is_evidence(self) -> bool:
        """Whether the change has evidence of the node's conduct: a field in EVIDENCE is not 0."""
        return any(getattr(self, name) for name in EVIDENCE)


@dataclass(frozen=True, slots=True)
class Point:
    """A training report that becomes a point of the node's chart; `at` is Unix seconds."""

    season_node: SeasonNode
    at: float
    report: ReportTraining


class Pair(NamedTuple):
    """Two nodes, and a minute in which the taker reported that it used rollouts of the giver.

    `minute` is the minute's start in Unix seconds.
    """

    season_id: int
    minute: int
    giver_id: int
    taker_id: int


class Lesson(msgspec.Struct, array_like=True, frozen=True):
    """A node's report that it trained on a rollout that was sampled for the archive.

    `rollout_id` is the id that the giver gave the rollout. `at` is the time of the report in Unix
    seconds.
    """

    season_id: int
    giver_id: int
    rollout_id: str
    taker_id: int
    at: int

    @property
    def pair(self) -> Pair:
        """The pair whose count in `Tally.pairs` includes this use."""
        return Pair(self.season_id, self.at // 60 * 60, self.giver_id, self.taker_id)


@dataclass
class Tally:
    """The changes of all nodes that are not yet written.

    `deliveries` counts how often each node's rollouts were given to others. `pairs` has, for each
    pair, how many of the giver's rollouts the taker used. `lessons` are the uses of rollouts that
    were sampled for the archive; they are also counted in `pairs`.
    """

    changes: dict[SeasonNode, Change] = field(default_factory=dict)
    points: list[Point] = field(default_factory=list)
    deliveries: Counter[SeasonNode] = field(default_factory=Counter)
    pairs: Counter[Pair] = field(default_factory=Counter)
    lessons: list[Lesson] = field(default_factory=list)

    def change(self, season_node: SeasonNode) -> Change:
        """Return the unwritten change of one node's contribution, for the caller to add to.

        It is created if missing.
        """
        change = self.changes.get(season_node)
        if change is None:
            change = self.changes[season_node] = Change()
        return change

    def count_refusal(self, season_node: SeasonNode, code: str) -> bool:
        """Count a refusal if its `code` is evidence of the node's conduct. Return whether it is."""
        if code == ErrorCode.RATE_LIMITED:
            self.change(season_node).hurried += 1
        elif code == ErrorCode.RATE_FLOOD:
            self.change(season_node).floods += 1
        elif code in UNREADABLE:
            self.change(season_node).refused += 1
        else:
            return False
        return True

    def take_changes(self) -> tuple[dict[SeasonNode, Change], list[Point]]:
        """Return `changes` and `points`, and clear both."""
        taken = self.changes, self.points
        self.changes, self.points = {}, []
        return taken

    def put_back(self, changes: dict[SeasonNode, Change], points: list[Point]) -> None:
        """Put back changes and points from `take_changes` that could not be written.

        They are merged with what was collected after that call. Only the newest MAX_POINTS points
        are kept.
        """
        for season_node, change in changes.items():
            change.merge_into(self.change(season_node))
        self.points = (points + self.points)[-MAX_POINTS:]

    def take_deliveries(self) -> Counter[SeasonNode]:
        """Return `deliveries`, and clear it."""
        taken, self.deliveries = self.deliveries, Counter()
        return taken

    def take_credits(self) -> tuple[Counter[Pair], list[Lesson]]:
        """Return `pairs` and `lessons`, and clear both."""
        taken = self.pairs, self.lessons
        self.pairs, self.lessons = Counter(), []
        return taken

    def bound_credits(self) -> None:
        """Drop the oldest items of `pairs` and `lessons`, down to MAX_PAIRS and MAX_LESSONS items.

        For use while credits cannot be sent, so that they do not fill the memory.
        """
        for pair in list(islice(self.pairs, max(0, len(self.pairs) - MAX_PAIRS))):
            del self.pairs[pair]
        del self.lessons[:-MAX_LESSONS]
