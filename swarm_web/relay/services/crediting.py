"""Credits are booked in batches: who learned from whom, and from which archived rollout.

A credit is taken off its list before it is booked, so it is never booked twice; while Postgres is
away it is put back. Who learned from whom is stored as it was reported. A giver's total leaves out
rollouts that our own check refutes, and what one pair has beyond so many a minute (`relay.pairs`).
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import DatabaseError, InterfaceError, connection, transaction
from django.db.models import Count, F, OuterRef, Subquery
from django.db.models.functions import Greatest

from swarm_web.nodes.models import Node
from swarm_web.relay.deliveries import Credit, give_back, take_credits
from swarm_web.relay.models import ArchivedRollout, Contribution, Exchange, Learned
from swarm_web.relay.pairs import Pair, admit
from swarm_web.store import sync_redis

_BOOKED_AT_ONCE = 2000
# With thousands of nodes there are millions of pairs an hour: beyond this many, new ones are not
# told apart any more, while every credit still counts for its giver.
MOST_PAIRS_AN_HOUR = 20_000

# season, hour, giver, taker -> how many rollouts
_Flow = tuple[int, datetime, int, int]
_Flows = Mapping[_Flow, int]
# season, author, the author's id of it
_Place = tuple[int, int, str]


@dataclass(frozen=True)
class _Lesson:
    """A credit with the nodes that it names."""

    credit: Credit
    giver: Node
    taker: Node

    @property
    def place(self) -> _Place:
        return self.credit.season_id, self.giver.pk, self.credit.rollout

    @property
    def flow(self) -> _Flow:
        return self.credit.season_id, _hour_of(self.credit.at), self.giver.pk, self.taker.pk

    @property
    def pair(self) -> Pair:
        minute = self.credit.at.replace(second=0, microsecond=0)
        return Pair(self.credit.season_id, minute, _party(self.giver), _party(self.taker))


def _party(node: Node) -> str:
    return f"node {node.pk}" if node.owner_id is None else f"owner {node.owner_id}"


def book_credits() -> int:
    """Book some of the credits that wait; return how many there were."""
    credits = take_credits(sync_redis(), most=_BOOKED_AT_ONCE)
    if not credits:
        return 0
    try:
        with transaction.atomic():
            _book(credits)
    except (DatabaseError, InterfaceError):
        give_back(sync_redis(), credits)
        raise
    return len(credits)


def _book(credits: Sequence[Credit]) -> None:
    giving = Node.objects.filter(name__in={credit.giver for credit in credits})
    taking = Node.objects.filter(pk__in={credit.taker_id for credit in credits})
    givers, takers = {node.name: node for node in giving}, {node.pk: node for node in taking}
    # Either may have been deleted meanwhile.
    known = [
        _Lesson(c, givers[c.giver], takers[c.taker_id])
        for c in credits
        if c.giver in givers and c.taker_id in takers
    ]
    if not known:
        return
    archived = _lock_archived(known)
    refuted = {place for place, row in archived.items() if row.is_refuted}
    _store_flows(Counter(lesson.flow for lesson in known))
    _note_learners(known, archived)
    _count_for_givers([lesson for lesson in known if lesson.place not in refuted])


def _lock_archived(lessons: Sequence[_Lesson]) -> dict[_Place, ArchivedRollout]:
    """Return the archived rollouts among those that were used; none is checked meanwhile."""
    seasons, authors, ids = (set(part) for part in zip(*(x.place for x in lessons), strict=True))
    found = ArchivedRollout.objects.filter(season__in=seasons, author__in=authors, rollout__in=ids)
    locked = found.select_for_update(of=("self",)).order_by("pk")
    return {(row.season_id, row.author_id, row.rollout): row for row in locked}


def _count_for_givers(lessons: Sequence[_Lesson]) -> None:
    """Add to every giver's total what counts of each pair; who published has a contribution."""
    left = admit(sync_redis(), Counter(lesson.pair for lesson in lessons))
    totals: Counter[tuple[int, int]] = Counter()
    for lesson in lessons:
        if left[lesson.pair] > 0:
            left[lesson.pair] -= 1
            totals[lesson.credit.season_id, lesson.giver.pk] += 1
    with connection.cursor() as cursor:
        cursor.execute(
            """
            UPDATE relay_contribution AS part SET used_by_others = part.used_by_others + given.used
            FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[]) AS given (season, giver, used)
            WHERE part.season_id = given.season AND part.node_id = given.giver
            """,
            [
                [season for season, _ in totals],
                [giver for _, giver in totals],
                list(totals.values()),
            ],
        )


def _store_flows(flows: _Flows) -> None:
    """Add to the exchanges of each hour; beyond MOST_PAIRS_AN_HOUR only to those that exist."""
    stored = Exchange.objects.filter(hour__in={hour for _, hour, _, _ in flows}).count()
    ordered = sorted(flows.items())
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO relay_exchange (season_id, hour, giver_id, taker_id, used)
            SELECT given.* FROM unnest(
                %s::bigint[], %s::timestamptz[], %s::bigint[], %s::bigint[], %s::bigint[]
            ) AS given (season, hour, giver, taker, used)
            WHERE %s OR EXISTS (
                SELECT FROM relay_exchange AS known
                WHERE (known.season_id, known.hour, known.giver_id, known.taker_id)
                    = (given.season, given.hour, given.giver, given.taker)
            )
            ON CONFLICT (season_id, hour, giver_id, taker_id)
            DO UPDATE SET used = relay_exchange.used + excluded.used
            """,
            [
                *([key[part] for key, _ in ordered] for part in range(4)),
                [used for _, used in ordered],
                stored + len(ordered) <= MOST_PAIRS_AN_HOUR,
            ],
        )


def _note_learners(lessons: Sequence[_Lesson], archived: Mapping[_Place, ArchivedRollout]) -> None:
    """Note who trained on an archived rollout, and count them anew."""
    learned = [
        Learned(rollout=archived[x.place], node_id=x.credit.taker_id, at=x.credit.at)
        for x in lessons
        if x.place in archived
    ]
    if not learned:
        return
    Learned.objects.bulk_create(learned, ignore_conflicts=True)
    learners = Learned.objects.filter(rollout=OuterRef("pk")).values("rollout")
    ArchivedRollout.objects.filter(pk__in={row.rollout_id for row in learned}).update(
        learned_by=Subquery(learners.annotate(count=Count("pk")).values("count"))
    )


def withdraw_credits(refuted: Iterable[ArchivedRollout]) -> None:
    """Take back what others' use of these rollouts counted, once for each, in a transaction.

    Also what was above the limit of a pair: the total is an estimate, and never below 0. Who
    learned from them stays stored, as it was reported.
    """
    for row in refuted:
        if row.learned_by:
            giver = Contribution.objects.filter(season=row.season_id, node=row.author_id)
            left = Greatest(F("used_by_others") - row.learned_by, 0)
            giver.update(used_by_others=left)


def _hour_of(moment: datetime) -> datetime:
    return moment.replace(minute=0, second=0, microsecond=0)
