"""Archived rollouts for pages: the newest, and search results.

Only verified rollouts are returned, with their question and the verdicts of the site's verifier.
Rows have `author` and `season` loaded. `row.learners` are the first LEARNERS_SHOWN nodes that
trained on the rollout (`Learned` with `node` loaded), oldest first; `row.learned_by` is the total
number of such nodes.
"""

from dataclasses import dataclass
from enum import StrEnum

from django.contrib.postgres.search import SearchQuery, SearchVector
from django.db.models import F, Prefetch, Q

from swarm_web.core.keyset import KeyMoment, KeyNumber, Keyset
from swarm_web.relay.models import ArchivedRollout, Learned
from swarm_web.relay.models.archive import ArchivedRolloutQuerySet

LEARNERS_SHOWN = 5
NEWEST_FIRST = Keyset("-published_at", "-pk", kind=tuple[KeyMoment, KeyNumber])


class FoundCompletions(StrEnum):
    """Which rollouts a search finds, by their completions.

    ANY: all rollouts. RIGHT: at least one completion is right. WRONG: none is right. MIXED: some
    are right and some are not.
    """

    ANY = ""
    RIGHT = "right"
    WRONG = "wrong"
    MIXED = "mixed"


_OUTCOMES = {
    FoundCompletions.ANY: Q(),
    FoundCompletions.RIGHT: Q(solved__gt=0),
    FoundCompletions.WRONG: Q(solved=0),
    FoundCompletions.MIXED: Q(solved__gt=0, solved__lt=F("total")),
}


@dataclass(frozen=True, kw_only=True)
class RolloutFilters:
    """Filters of a search; empty or None means no filter.

    `author` is the name of the node that published the rollout, `learner` that of a node that
    trained on it. `words` is searched for in questions, written as in a web search: all words,
    "phrases", -exclusions.
    """

    season_id: int | None = None
    words: str = ""
    model: str = ""
    author: str = ""
    learner: str = ""
    dataset: str = ""
    outcome: FoundCompletions = FoundCompletions.ANY


def recent_rollouts(season_id: int, *, limit: int) -> list[ArchivedRollout]:
    """Return the latest verified rollouts of a season, newest first, in two queries."""
    return list(search_rollouts(RolloutFilters(season_id=season_id))[:limit])


def search_rollouts(filters: RolloutFilters) -> ArchivedRolloutQuerySet:
    """Return the verified rollouts that match `filters`, newest first, as a QuerySet.

    Reading the QuerySet takes two queries. This function makes one more if `filters.learner` is
    set.
    """
    rows = ArchivedRollout.objects.verified()
    if filters.learner and not Learned.objects.filter(node__name=filters.learner).exists():
        # Otherwise Postgres would search the whole archive for a learner that it lacks.
        return rows.none()
    return _with_people(_filter(rows, filters).newest_first())


def find_rollout(pk: int) -> ArchivedRollout | None:
    """Return the verified rollout with this key, in two queries; None if there is none."""
    return _with_people(ArchivedRollout.objects.verified().filter(pk=pk)).first()


def _with_people(rows: ArchivedRolloutQuerySet) -> ArchivedRolloutQuerySet:
    first = Learned.objects.select_related("node").order_by("at", "pk")[:LEARNERS_SHOWN]
    # The model declares the attribute for its readers; the type checker requires a new name.
    learners = Prefetch("learned", queryset=first, to_attr="learners")
    return rows.select_related("author", "season").prefetch_related(learners)  # type: ignore[no-redef]


def _filter(rows: ArchivedRolloutQuerySet, filters: RolloutFilters) -> ArchivedRolloutQuerySet:
    wanted = {
        "season": filters.season_id,
        "author__name": filters.author,
        "learned__node__name": filters.learner,
        "model": filters.model,
        "dataset": filters.dataset,
    }
    rows = rows.filter(
        _OUTCOMES[filters.outcome], **{name: value for name, value in wanted.items() if value}
    )
    if filters.words:
        # The expression of the index `archive_by_words`.
        rows = rows.annotate(text=SearchVector("question", config="simple")).filter(
            text=SearchQuery(filters.words, config="simple", search_type="websearch")
        )
    return rows
