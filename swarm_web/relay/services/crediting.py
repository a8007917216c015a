"""Credits are booked in batches: who learned from whom, and from which archived rollout.

A credit is taken off its list before it is booked, so it is never booked twice; while Postgres is
away it is put back.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime

from django.db import DatabaseError, InterfaceError, connection, transaction
from django.db.models import Count, OuterRef, Subquery

from swarm_web.nodes.models import Node
from swarm_web.relay.deliveries import Credit, give_back, take_credits
from swarm_web.relay.models import ArchivedRollout, Exchange, Learned
from swarm_web.store import sync_redis

_BOOKED_AT_ONCE = 2000
# With thousands of nodes there are millions of pairs an hour: beyond this many, new ones are not
# told apart any more, while every credit still counts for its giver.
MOST_PAIRS_AN_HOUR = 20_000

# season, hour, giver, taker -> how many rollouts
_Flows = Mapping[tuple[int, datetime, int, int], int]


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
    givers = dict(
        Node.objects.filter(name__in={credit.giver for credit in credits}).values_list("name", "pk")
    )
    takers = set(
        Node.objects.filter(pk__in={credit.taker_id for credit in credits}).values_list(
            "pk", flat=True
        )
    )
    # Either may have been deleted meanwhile.
    known = [c for c in credits if c.giver in givers and c.taker_id in takers]
    flows = Counter((c.season_id, _hour_of(c.at), givers[c.giver], c.taker_id) for c in known)
    if not flows:
        return
    _count_for_givers(flows)
    _store_flows(flows)
    _note_learners(known, givers)


def _count_for_givers(flows: _Flows) -> None:
    """Add to every giver's total; who published has a contribution."""
    totals: Counter[tuple[int, int]] = Counter()
    for (season, _, giver, _), used in flows.items():
        totals[season, giver] += used
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


def _note_learners(credits: Sequence[Credit], givers: Mapping[str, int]) -> None:
    """Note who trained on an archived rollout, and count them anew."""
    takers: defaultdict[tuple[int, int, str], list[Credit]] = defaultdict(list)
    for credit in credits:
        takers[credit.season_id, givers[credit.giver], credit.rollout].append(credit)
    seasons, authors, ids = (set(part) for part in zip(*takers, strict=True))
    archived = ArchivedRollout.objects.filter(
        season__in=seasons, author__in=authors, rollout__in=ids
    ).values_list("pk", "season_id", "author_id", "rollout")
    learned = [
        Learned(rollout_id=pk, node_id=credit.taker_id, at=credit.at)
        for pk, season, author, rollout in archived
        for credit in takers.get((season, author, rollout), ())
    ]
    if not learned:
        return
    Learned.objects.bulk_create(learned, ignore_conflicts=True)
    learners = Learned.objects.filter(rollout=OuterRef("pk")).values("rollout")
    ArchivedRollout.objects.filter(pk__in={row.rollout_id for row in learned}).update(
        learned_by=Subquery(learners.annotate(count=Count("pk")).values("count"))
    )


def _hour_of(moment: datetime) -> datetime:
    return moment.replace(minute=0, second=0, microsecond=0)
