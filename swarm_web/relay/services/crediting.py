"""Credits are booked in batches: who learned from whom, and from which archived rollout.

A batch is taken off the list before it is booked, so it is never booked twice; while Postgres is
away it is put back. Who learned from whom is stored as it was reported. A giver's total leaves out
rollouts that our own check refutes, and what one pair has beyond so many a minute (`relay.pairs`).
"""

import logging
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import cast

import msgspec
from django.db import DatabaseError, InterfaceError, connection, transaction
from django.db.models import Count, F, OuterRef, Subquery
from django.db.models.functions import Greatest

from swarm_web.nodes.models import Node
from swarm_web.relay.keys import CREDITS
from swarm_web.relay.models import ArchivedRollout, Contribution, Exchange, Learned
from swarm_web.relay.pairs import PartyPair, admit
from swarm_web.relay.tally import Credits, Lesson, Pair
from swarm_web.store import sync_redis

logger = logging.getLogger(__name__)

# Batches of the web processes, each of some seconds.
_BOOKED_AT_ONCE = 16
# With thousands of nodes there are millions of pairs an hour: beyond this many, new ones are not
# told apart any more, while every credit still counts for its giver.
MOST_PAIRS_AN_HOUR = 20_000
_HOUR_S = 3600

# season, hour, giver, taker
_Flow = tuple[int, datetime, int, int]
# season, author, the author's id of it
_Place = tuple[int, int, str]

_decoder = msgspec.msgpack.Decoder(Credits)


def book_credits() -> int:
    """Book some of the batches that wait; return how many there were."""
    packed = cast("list[bytes] | None", sync_redis().lpop(CREDITS, _BOOKED_AT_ONCE))
    if not packed:
        return 0
    pairs: Counter[Pair] = Counter()
    lessons: list[Lesson] = []
    for batch in _unpack(packed):
        lessons += batch.lessons
        for pair, count in batch.pairs:
            pairs[pair] += count
    try:
        with transaction.atomic():
            _book(pairs, lessons)
    except (DatabaseError, InterfaceError):
        sync_redis().rpush(CREDITS, *packed)
        raise
    return len(packed)


def _unpack(packed: Iterable[bytes]) -> Iterator[Credits]:
    """Decode batches, without those that another version of the site wrote in another way."""
    for each in packed:
        try:
            yield _decoder.decode(each)
        except msgspec.DecodeError:
            logger.warning("left out a batch of credits that cannot be read", exc_info=True)


def _book(pairs: Counter[Pair], lessons: Sequence[Lesson]) -> None:
    named = {node_id for pair in pairs for node_id in (pair.giver_id, pair.taker_id)}
    # Any of them may have been deleted meanwhile.
    nodes = Node.objects.only("pk", "owner_id").in_bulk(named)
    known = Counter(
        {
            pair: count
            for pair, count in pairs.items()
            if pair.giver_id in nodes and pair.taker_id in nodes
        }
    )
    if not known:
        return
    archived = _lock_archived(lessons)
    _store_flows(_add_up_flows(known))
    _note_learners([lesson for lesson in lessons if lesson.taker_id in nodes], archived)
    refuted = {place for place, row in archived.items() if row.is_refuted}
    _count_for_givers(known, _refuted_lessons(lessons, refuted), nodes)


def _place_of(lesson: Lesson) -> _Place:
    return lesson.season_id, lesson.giver_id, lesson.rollout_id


def _lock_archived(lessons: Sequence[Lesson]) -> dict[_Place, ArchivedRollout]:
    """Return the archived rollouts among those that were used; none is checked meanwhile."""
    if not lessons:
        return {}
    seasons, authors, ids = (set(part) for part in zip(*map(_place_of, lessons), strict=True))
    found = ArchivedRollout.objects.filter(season__in=seasons, author__in=authors, rollout__in=ids)
    locked = found.select_for_update(of=("self",)).order_by("pk")
    return {(row.season_id, row.author_id, row.rollout): row for row in locked}


def _refuted_lessons(lessons: Sequence[Lesson], refuted: set[_Place]) -> Counter[Pair]:
    """Return how many credits of each pair are for rollouts that our check refutes."""
    return Counter(
        Pair(each.season_id, each.at // 60 * 60, each.giver_id, each.taker_id)
        for each in lessons
        if _place_of(each) in refuted
    )


def _count_for_givers(
    pairs: Counter[Pair], refuted: Counter[Pair], nodes: Mapping[int, Node]
) -> None:
    """Add to every giver's total what counts of each pair; who published has a contribution."""
    wanted: Counter[PartyPair] = Counter()
    givers: defaultdict[PartyPair, Counter[int]] = defaultdict(Counter)
    for pair, count in (pairs - refuted).items():
        parties = PartyPair(
            pair.season_id, pair.minute, nodes[pair.giver_id].party, nodes[pair.taker_id].party
        )
        wanted[parties] += count
        givers[parties][pair.giver_id] += count
    totals: Counter[tuple[int, int]] = Counter()
    for parties, left in admit(sync_redis(), wanted).items():
        for giver_id, count in givers[parties].items():
            counted = min(count, left)
            left -= counted
            totals[parties.season_id, giver_id] += counted
    _add_to_totals(totals)


def _add_to_totals(totals: Counter[tuple[int, int]]) -> None:
    """Rows are locked in one order, so that two processes never wait for each other."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            UPDATE relay_contribution AS part SET used_by_others = part.used_by_others + new.used
            FROM (
                SELECT known.id, given.used
                FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[]) AS given (season, giver, used)
                JOIN relay_contribution AS known
                    ON known.season_id = given.season AND known.node_id = given.giver
                ORDER BY known.id FOR UPDATE OF known
            ) AS new
            WHERE part.id = new.id
            """,
            [
                [season for season, _ in totals],
                [giver for _, giver in totals],
                list(totals.values()),
            ],
        )


def _add_up_flows(pairs: Counter[Pair]) -> Counter[_Flow]:
    flows: Counter[_Flow] = Counter()
    for pair, count in pairs.items():
        hour = datetime.fromtimestamp(pair.minute // _HOUR_S * _HOUR_S, UTC)
        flows[pair.season_id, hour, pair.giver_id, pair.taker_id] += count
    return flows


def _store_flows(flows: Counter[_Flow]) -> None:
    """Add to the exchanges of each hour; beyond MOST_PAIRS_AN_HOUR only to those that exist.

    Those of a season that was deleted meanwhile are left out.
    """
    stored = Exchange.objects.filter(hour__in={hour for _, hour, _, _ in flows}).count()
    ordered = sorted(flows.items())
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO relay_exchange (season_id, hour, giver_id, taker_id, used)
            SELECT given.* FROM unnest(
                %s::bigint[], %s::timestamptz[], %s::bigint[], %s::bigint[], %s::bigint[]
            ) AS given (season, hour, giver, taker, used)
            JOIN judge_season ON judge_season.id = given.season
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


def _note_learners(lessons: Sequence[Lesson], archived: Mapping[_Place, ArchivedRollout]) -> None:
    """Note who trained on an archived rollout, and count them again."""
    learned = [
        Learned(
            rollout=archived[_place_of(each)],
            node_id=each.taker_id,
            at=datetime.fromtimestamp(each.at, UTC),
        )
        for each in lessons
        if _place_of(each) in archived
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
