"""What nodes gave, took and reported since it was last written to Postgres; pure.

A step of a node changes some numbers in memory. Every few seconds the hub takes all of them and has
them written in a few statements (`relay.services.folding`, `relay.services.crediting`).
"""

from collections import Counter
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

import msgspec

from swarm_protocol.errors import ErrorCode
from swarm_protocol.messages import ReportTraining

# A chart shows no more points of a node's training.
POINT_EVERY_S = 180.0

# While a store is away: hours of thousands of nodes, and then the latest are kept.
MOST_POINTS = 20_000
MOST_PAIRS = 200_000
MOST_LESSONS = 50_000

# Messages that no client sends; what a newer one sends besides is a small share.
UNREADABLE = frozenset(
    {
        ErrorCode.PROTOCOL_NOT_JSON,
        ErrorCode.PROTOCOL_TOO_LARGE,
        ErrorCode.PROTOCOL_UNKNOWN_TYPE,
        ErrorCode.PROTOCOL_INVALID,
    }
)

# season, node
Part = tuple[int, int]


@dataclass(slots=True)
class Change:
    """What is added to one node's contribution to a season, and its latest report.

    Of the totals in reports the largest counts, so a report that arrives twice or late counts once.
    """

    published: int = 0
    rejected: int = 0
    delivered: int = 0
    report: ReportTraining | None = None
    step: int = 0
    local_used: int = 0
    external_used: int = 0
    # What is evidence of conduct; `refused` and `copies` among the rollouts are in `rejected` too.
    refused: int = 0
    copies: int = 0
    hurried: int = 0
    floods: int = 0

    def note(self, report: ReportTraining) -> None:
        """Take over what a report says."""
        self.report = report
        self.step = max(self.step, report.step)
        self.local_used = max(self.local_used, report.local_used)
        self.external_used = max(self.external_used, report.external_used)

    def merge_into(self, later: "Change") -> None:
        """Add this earlier change to a later one."""
        later.published += self.published
        later.rejected += self.rejected
        later.delivered += self.delivered
        later.step = max(self.step, later.step)
        later.local_used = max(self.local_used, later.local_used)
        later.external_used = max(self.external_used, later.external_used)
        later.report = later.report or self.report
        later.refused += self.refused
        later.copies += self.copies
        later.hurried += self.hurried
        later.floods += self.floods

    @property
    def is_evidence(self) -> bool:
        """Whether it says something about the node's conduct."""
        return bool(self.refused or self.copies or self.hurried or self.floods)


@dataclass(frozen=True, slots=True)
class Point:
    """A report that becomes a point of the node's chart; `at` is Unix seconds."""

    part: Part
    at: float
    report: ReportTraining


class Pair(NamedTuple):
    """A node learned from another one in a minute, which begins at `minute` (Unix seconds)."""

    season_id: int
    minute: int
    giver_id: int
    taker_id: int


class Lesson(msgspec.Struct, array_like=True, frozen=True):
    """A node trained on a rollout that the archive may hold, at a time in Unix seconds."""

    season_id: int
    giver_id: int
    rollout_id: str
    taker_id: int
    at: int


@dataclass
class Tally:
    """The changes that wait."""

    changes: dict[Part, Change] = field(default_factory=dict)
    points: list[Point] = field(default_factory=list)
    given: Counter[Part] = field(default_factory=Counter)
    pairs: Counter[Pair] = field(default_factory=Counter)
    lessons: list[Lesson] = field(default_factory=list)

    def change(self, part: Part) -> Change:
        """Return the change of one node's contribution, to be added to."""
        found = self.changes.get(part)
        if found is None:
            found = self.changes[part] = Change()
        return found

    def note_refusal(self, part: Part, code: str) -> bool:
        """Count a refused message if it is evidence of a node's conduct, and tell whether it is."""
        if code == ErrorCode.RATE_LIMITED:
            self.change(part).hurried += 1
        elif code == ErrorCode.RATE_FLOOD:
            self.change(part).floods += 1
        elif code in UNREADABLE:
            self.change(part).refused += 1
        else:
            return False
        return True

    def take_changes(self) -> tuple[dict[Part, Change], list[Point]]:
        """Take what is written to contributions and charts."""
        taken = self.changes, self.points
        self.changes, self.points = {}, []
        return taken

    def put_back(self, changes: dict[Part, Change], points: list[Point]) -> None:
        """Put back what could not be written."""
        for part, change in changes.items():
            change.merge_into(self.change(part))
        self.points = (points + self.points)[-MOST_POINTS:]

    def take_given(self) -> Counter[Part]:
        """Take how many rollouts of each node were given to others."""
        taken, self.given = self.given, Counter()
        return taken

    def take_credits(self) -> tuple[Counter[Pair], list[Lesson]]:
        """Take who learned from whom."""
        taken = self.pairs, self.lessons
        self.pairs, self.lessons = Counter(), []
        return taken

    def bound_credits(self) -> None:
        """Drop the oldest credits beyond MOST_PAIRS and MOST_LESSONS: they cannot be written."""
        for pair in list(islice(self.pairs, max(0, len(self.pairs) - MOST_PAIRS))):
            del self.pairs[pair]
        del self.lessons[:-MOST_LESSONS]
