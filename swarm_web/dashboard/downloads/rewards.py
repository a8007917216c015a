"""The reward downloads: every score of closed rounds, round by round.

If a node is quarantined at the time of the download, all of its rows keep their score, but have
`quarantined` as status and as reason. So the rows with status `scored` belong to the nodes that
the leaderboard shows.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Case, F, QuerySet, Value, When
from django.utils.translation import gettext_lazy as _

from judge.models import Round, Score
from judge.selectors.scores import exported_scores
from swarm_web.core.errors import RequestError
from swarm_web.dashboard.downloads.batches import read_batches
from swarm_web.dashboard.downloads.formats import Column, ColumnKind, Row

# The data dictionary of /downloads/. Columns are only ever added at the end.
COLUMNS = (
    Column("season", ColumnKind.TEXT, _("The season's name."), "round__season__name"),
    Column(
        "round",
        ColumnKind.WHOLE,
        _("The judge round's number, unique across all seasons."),
        "round__number",
    ),
    Column("node", ColumnKind.TEXT, _("The node's name."), "node__name"),
    Column("model", ColumnKind.TEXT, _("The model that the node declared when the round closed.")),
    Column(
        "arm",
        ColumnKind.TEXT,
        _(
            "When the round closed: swarm (also trains on other nodes' rollouts), "
            "isolated, or base (untrained)."
        ),
    ),
    Column(
        "score",
        ColumnKind.FRACTION,
        _(
            "Judge score of the round, from 0 to 1: macro pass@1, the unweighted mean "
            "over datasets of the share of questions solved. Empty if absent. The mean "
            "over a season's rounds equals the season's score if every round asks the "
            "same number of questions of each dataset and no round was excluded."
        ),
    ),
    Column(
        "interval_low",
        ColumnKind.FRACTION,
        _("Lower bound of the score's 95 % interval (Clopper-Pearson, effective n)."),
    ),
    Column("interval_high", ColumnKind.FRACTION, _("Upper bound of that interval.")),
    Column("n", ColumnKind.WHOLE, _("Number of questions that count for the node in this round.")),
    Column(
        "status",
        ColumnKind.TEXT,
        _(
            "scored; absent (no score in this round: the reason says why); or quarantined "
            "(the node is not ranked now, whatever its score)."
        ),
        "shown_status",
    ),
    Column(
        "reason",
        ColumnKind.TEXT,
        _(
            "Why the result is lower, missing or does not count: unanswered, unscored, "
            "not_offered, declined, came_late or quarantined. Empty when it is complete."
        ),
        "shown_reason",
    ),
    Column(
        "closed_at",
        ColumnKind.TIME,
        _("When the round closed, ISO 8601 in UTC."),
        "round__closed_at",
    ),
)
# Read once per round, not per row: parsing datetimes would take a third of the time.
_OF_ROUND = ("season__name", "number", "closed_at")
_OF_SCORE = tuple(c.field for c in COLUMNS if not c.field.startswith("round__"))
_QUARANTINED = Value("quarantined")

# Query parameter, lookup, and parser of the value: filters of rounds, and filters of scores.
_ROUND_FILTERS: Mapping[str, tuple[str, Callable[[str], object]]] = {
    "season": ("season__name", str),
    "round_from": ("number__gte", int),
    "round_to": ("number__lte", int),
}
_SCORE_FILTERS: Mapping[str, tuple[str, Callable[[str], object]]] = {
    "node": ("node__name", str),
    "arm": ("arm", str),
    "model": ("model", str),
}
FILTERS = ("season", "node", "arm", "model", "round_from", "round_to")


@dataclass(frozen=True)
class Rewards:
    """The selected scores: those in `scores` that belong to a round in `rounds`."""

    rounds: QuerySet[Round]
    scores: QuerySet[Score]

    def read(self) -> Iterator[Sequence[Row]]:
        """Yield rows of COLUMNS, sorted by round and the node's name, in batches."""
        rows = self.rounds.order_by("number").values_list("pk", *_OF_ROUND)
        rounds = {key: (season, number, at) for key, season, number, at in rows}

        def select(some: Sequence[int]) -> list[Row]:
            found = self.scores.filter(round__in=some).values_list("round_id", *_OF_SCORE)
            return [(*rounds[key][:2], *own, rounds[key][2]) for key, *own in found]

        return read_batches(list(rounds), select)


def select_rewards(query: Mapping[str, str]) -> Rewards:
    """Return the scores of closed rounds that a query string selects.

    An empty query string selects all scores. Raises RequestError if a parameter is not in FILTERS,
    or if a number is invalid.
    """
    for name in query:
        if name not in FILTERS:
            raise RequestError(
                "query.unknown_filter",
                f"There is no filter {name[:40]!r}.",
                fix=f"Use {', '.join(FILTERS)}.",
            )
    scores = exported_scores().annotate(
        shown_status=Case(When(node__quarantined=True, then=_QUARANTINED), default=F("status")),
        shown_reason=Case(When(node__quarantined=True, then=_QUARANTINED), default=F("reason")),
    )
    closed = Round.objects.filter(phase=Round.Phase.CLOSED)
    return Rewards(
        rounds=closed.filter(**_read_lookups(query, _ROUND_FILTERS)),
        scores=scores.filter(**_read_lookups(query, _SCORE_FILTERS)),
    )


def _read_lookups(
    query: Mapping[str, str], filters: Mapping[str, tuple[str, Callable[[str], object]]]
) -> dict[str, object]:
    """Return a Django lookup with its value for each of `filters` that the query string has.

    `filters` maps a parameter to its lookup and to a function that parses the parameter's value.
    Raises RequestError for an invalid number.
    """
    lookups: dict[str, object] = {}
    for name, (lookup, read) in filters.items():
        if name not in query:
            continue
        try:
            lookups[lookup] = read(query[name])
        except ValueError:
            raise RequestError(
                "query.invalid_filter",
                f"{name} is not a number: {query[name][:40]!r}.",
                fix="Give a round number, such as 12.",
            ) from None
    return lookups
