"""The current state of the swarm, for the home page and the pill in the header of each page."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from hashlib import sha256
from math import sqrt

from django.db.models import Sum
from django.utils import timezone

from judge.models import ChainLink, Counted, Round, Ruling, Score, Season, Standing, Window
from judge.selectors.rounds import current_round, round_in_progress
from judge.selectors.seasons import running_season, shown_season
from swarm_web.board.leaderboard import Leaderboard
from swarm_web.board.pace import Pace, read_pace
from swarm_web.dashboard.models import Announcement
from swarm_web.dashboard.reports.board import read_board
from swarm_web.nodes.models import Node
from swarm_web.relay.models import ArchivedRollout
from swarm_web.relay.selectors.archive import recent_rollouts

# Number of changes that are tested exactly: only the largest ones.
_CANDIDATES = 20
_ALPHA = 0.05
LEADERS = 5
FEED_ROLLOUTS = 4


# ---- the round pill


@dataclass(frozen=True)
class Pill:
    """What the top of each page shows: the current round, and how many nodes are `connected`.

    `season` is the name of the running season, or of an ended one whose last round is not over yet;
    None if there is neither. `number` is the current round's number; `phase` and `until` are the
    results of `describe_phase` for that round. If there is no current round, `number` and `until`
    are None, and `phase` is `paused`, `manual` (the operator makes the season's rounds by hand) or
    `none`. `now` is the site's time, for countdowns.
    """

    season: str | None
    number: int | None
    phase: str
    until: datetime | None
    connected: int
    now: datetime


def read_pill(*, now: datetime) -> Pill:
    """Return what the header of each page shows, in three queries."""
    season, number, phase, until = _read_phase()
    connected = Node.objects.connected(now=now).count()
    return Pill(season, number, phase, until, connected, now)


def _read_phase() -> tuple[str | None, int | None, str, datetime | None]:
    """Return the first four fields of Pill: season, number, phase and until."""
    season = running_season()
    judge_round = current_round(season) if season else round_in_progress()
    if judge_round is None:
        return season.name if season else None, None, _explain_none(season), None
    return judge_round.season.name, judge_round.number, *describe_phase(judge_round)


def describe_phase(judge_round: Round) -> tuple[str, datetime | None]:
    """Return a round's phase, and the time when this phase ends, or None if that is unknown.

    If the round is scheduled and its season is paused, the phase is `paused`. Otherwise it is the
    value of the round's Round.Phase. The end of the phase `open` is known. The end of the phase
    `scheduled` is known if the round has its questions.
    """
    if judge_round.phase == Round.Phase.SCHEDULED and judge_round.season.paused:
        return "paused", None
    ends = {
        Round.Phase.SCHEDULED: judge_round.opens_at if judge_round.is_drawn else None,
        Round.Phase.OPEN: judge_round.closes_at,
    }
    phase = Round.Phase(judge_round.phase)
    return phase.value, ends.get(phase)


def _explain_none(season: Season | None) -> str:
    if season is None:
        return "none"
    if season.paused:
        return "paused"
    return "none" if season.cadence_seconds else "manual"


# ---- who moved


@dataclass(frozen=True)
class ScoreChange:
    """One node's results in two rounds, each as (questions solved, questions that count)."""

    node: str
    before: tuple[int, int]
    after: tuple[int, int]

    @property
    def difference(self) -> float:
        """The increase of the share of solved questions, in [-1, 1]."""
        return self.after[0] / self.after[1] - self.before[0] / self.before[1]

    @property
    def z(self) -> float:
        """`difference` in standard errors, estimated from both rounds; used only for sorting."""
        n_before, n_after = self.before[1], self.after[1]
        share = (self.before[0] + self.after[0]) / (n_before + n_after)
        error = sqrt(share * (1 - share) * (1 / n_before + 1 / n_after))
        return self.difference / error if error else 0.0


@dataclass(frozen=True)
class Moves:
    """The most significant change of a node between the season's last two closed rounds.

    `mover` is None if no change is significant. `compared` is the number of nodes that were scored
    in both rounds, without untrained and quarantined ones. `rounds` are the numbers of the rounds,
    the earlier one first; None before the season has two closed rounds.
    """

    mover: ScoreChange | None
    compared: int
    rounds: tuple[int, int] | None


def find_mover(changes: Sequence[ScoreChange]) -> ScoreChange | None:
    """Return the most significant change; None if none is significant.

    A change is tested with Fisher's exact test, on the solved and missed questions in the two
    rounds. The largest of many changes can be large by chance alone, so the p-values get
    Bonferroni's correction for the number of changes.
    """
    largest = sorted(changes, key=lambda change: -abs(change.z))[:_CANDIDATES]
    tested = [(_p_value(change), change) for change in largest]
    sure = [(p, change) for p, change in tested if p * len(changes) <= _ALPHA]
    return min(sure, key=lambda found: found[0])[1] if sure else None


def _p_value(change: ScoreChange) -> float:
    # Imported here: it takes most of a second, and few processes need it.
    from scipy.stats import fisher_exact

    table = [[solved, asked - solved] for solved, asked in (change.before, change.after)]
    return float(fisher_exact(table).pvalue)


def read_moves(season: Season) -> Moves:
    """Compare a season's last two closed rounds.

    If fewer than two have closed, return a Moves without a mover and without rounds. The comparison
    is cached until a round closes or a ruling is made.
    """
    closed = Round.objects.filter(season=season, phase=Round.Phase.CLOSED, closed_at__isnull=False)
    latest = list(closed.order_by("-closed_at").values_list("pk", "number")[:2])
    if len(latest) < 2:
        return Moves(None, 0, None)
    (after, after_number), (before, before_number) = latest
    ruling = Ruling.objects.values_list("pk", flat=True).first()
    mover, compared = _compare(before, after, ruling)
    return Moves(mover, compared, (before_number, after_number))


@lru_cache(maxsize=8)
def _compare(before: int, after: int, _ruling: int | None) -> tuple[ScoreChange | None, int]:
    """Return the fields `mover` and `compared` of `Moves` for two closed rounds.

    `before` and `after` are the rounds' ids. Untrained and quarantined nodes are left out. Scores
    of closed rounds change only with a ruling, so `_ruling`, the last ruling's id, is part of the
    cache key.
    """
    scored = Score.objects.filter(status=Score.Status.SCORED, node__quarantined=False)
    scored = scored.exclude(arm=Node.Arm.BASE)
    earlier = {
        node: (correct, n)
        for node, correct, n in scored.filter(round=before).values_list("node", "correct", "n")
    }
    later = scored.filter(round=after)
    changes = [
        ScoreChange(name, earlier[node], (correct, n))
        for node, name, correct, n in later.values_list("node", "node__name", "correct", "n")
        if node in earlier
    ]
    return find_mover(changes), len(changes)


# ---- the home page


@dataclass(frozen=True)
class FeedLine:
    """A rollout in the feed, with one of its completions: the first right one, else the first.

    `text` is the text of this completion, and `right` is whether it is right.
    """

    rollout: ArchivedRollout
    text: str
    right: bool


@dataclass(frozen=True)
class Home:
    """What the home page shows.

    `board` has the first LEADERS rows of the season's leaderboard. `connected` is the number of
    connected nodes. `judged` is the number of questions that count in the window `24h`, answered or
    not, summed over nodes. `pace` is how many rollouts per minute are delivered and used, None
    while that is unknown. `feed` has the newest rollouts.
    """

    board: Leaderboard
    connected: int
    judged: int
    pace: Pace | None
    moves: Moves
    feed: list[FeedLine]


def read_home(*, now: datetime) -> Home:
    """Read the home page in a constant number of queries."""
    season = shown_season()
    return Home(
        board=read_board(Window.SEASON, now=now, limit=LEADERS),
        connected=Node.objects.connected(now=now).count(),
        judged=_count_judged(season) if season else 0,
        pace=read_pace(season.pk, now=now) if season else None,
        moves=read_moves(season) if season else Moves(None, 0, None),
        feed=[
            describe_rollout(rollout)
            for rollout in (recent_rollouts(season.pk, limit=FEED_ROLLOUTS) if season else [])
        ],
    )


def describe_rollout(rollout: ArchivedRollout) -> FeedLine:
    """Return a rollout's line in the feed. The rollout must have at least one completion."""
    completions = rollout.completions
    shown = next((c for c in completions if c.get("solved")), completions[0])
    return FeedLine(rollout, text=str(shown["text"]), right=bool(shown.get("solved")))


def _count_judged(season: Season) -> int:
    """Return the number of questions that count in the window `24h`, summed over nodes.

    The number is read from the standings, because counting answers is too slow.
    """
    day = Standing.objects.filter(season=season, window=Window.DAY)
    return day.aggregate(n=Sum("n"))["n"] or 0


# ---- what several pages show


def current_announcement(*, now: datetime) -> Announcement | None:
    """Return the announcement to show at `now`; None without one.

    Of several current announcements, it is the one that started last.
    """
    return Announcement.objects.shown(now=now).first()


def latest_chain_link() -> ChainLink | None:
    """Return the newest link of the public chain; None while the chain is empty."""
    return ChainLink.objects.last()


def read_state() -> str:
    """Return the state token, a text that changes when pages must be fetched again.

    Pages have parts that live messages do not contain. The token changes when one of these changes:

    - the last round in the standings, or the operator's last ruling: charts depend on them;
    - the season, its current round, or the round's phase: other pages depend on them;
    - the announcement: the home page depends on it.

    The token is the same in all processes and languages.
    """
    booked = Counted.objects.filter(window=Window.ROUND).order_by("-pk")
    announcement = current_announcement(now=timezone.now())
    parts = (
        _read_phase()[:3],
        booked.values_list("pk", flat=True).first(),
        Ruling.objects.values_list("pk", flat=True).first(),
        (announcement.pk, announcement.text) if announcement else None,
    )
    return sha256(repr(parts).encode()).hexdigest()[:16]
