"""Books credits in batches: whose rollouts were used, and who trained on archived ones.

No batch is booked twice. Each web process numbers its batches. The transaction that books a batch
also stores its number (`CreditSource`), and only then is the batch removed from the list in Redis.
If Postgres, Redis or the worker fails in between, the next call books what is not booked yet.

A giver's total (`Contribution.used_by_others`) does not count credits for rollouts that the site's
check refutes, nor credits over the limit for a pair of parties (`relay.pairs`). `Exchange` counts
both kinds.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import cast

import msgspec
from django.db import DataError, IntegrityError, connection, transaction
from django.db.models import Count, F, OuterRef, Subquery
from django.db.models.functions import Greatest

from swarm_web.core.store import sync_redis
from swarm_web.nodes.models import Node
from swarm_web.relay.credits import Credits, PairKey
from swarm_web.relay.keys import CREDITS
from swarm_web.relay.models import ArchivedRollout, Contribution, CreditSource, Exchange, Learned
from swarm_web.relay.pairs import PartyPair, admit_credits
from swarm_web.relay.tally import Lesson

logger = logging.getLogger(__name__)

# Batches of the web processes, each of a few seconds.
_BOOKING_BATCH = 16
# Thousands of nodes give millions of pairs an hour. Beyond this number, new pairs are not stored
# separately, but every credit still counts for its giver.
MAX_PAIRS_PER_HOUR = 20_000

# season id, author's node id, the id that the author gave the rollout
_ArchiveKey = tuple[int, int, str]

_decoder = msgspec.msgpack.Decoder(Credits)


def book_credits() -> int:
    """Book up to _BOOKING_BATCH waiting batches of credits, and remove them from Redis.

    Batches that are unreadable or were booked before are only removed. Returns how many were
    removed; 0 if none waits or another worker is booking.
    """
    with transaction.atomic():
        if not _try_lock():
            return 0
        packed = cast("list[bytes]", sync_redis().lrange(CREDITS, 0, _BOOKING_BATCH - 1))
        batches = [batch for each in packed if (batch := _unpack(each))]
        _book_new(batches)
    # By value, not by position: the web processes may have dropped the oldest batches.
    with sync_redis().pipeline(transaction=False) as pipeline:
        for each in packed:
            pipeline.lrem(CREDITS, 1, cast("str", each))
        pipeline.execute()
    return len(packed)


def _try_lock() -> bool:
    """Try to lock the booking of credits until the transaction ends.

    Returns False, without waiting, if another worker has the lock.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(hashtext('relay.credits'))")
        [is_locked] = cast("tuple[bool]", cursor.fetchone())
    return is_locked


def _unpack(packed: bytes) -> Credits | None:
    """Return the unpacked batch, or None if it is unreadable.

    A batch of another version of the site may be unreadable.
    """
    try:
        return _decoder.decode(packed)
    except msgspec.DecodeError:
        logger.warning("ignored an unreadable batch of credits", exc_info=True)
        return None


def _book_new(batches: Sequence[Credits]) -> None:
    """Book the batches not yet booked, together, or one by one if Postgres rejects their data."""
    last_numbers = dict(
        CreditSource.objects.filter(name__in={batch.source for batch in batches}).values_list(
            "name", "number"
        )
    )
    new = []
    for batch in batches:
        if batch.number > last_numbers.get(batch.source, 0):
            new.append(batch)
            last_numbers[batch.source] = batch.number
    try:
        with transaction.atomic():
            _book(new)
    except (DataError, IntegrityError):
        for batch in new:
            _book_one(batch)
    CreditSource.objects.bulk_create(
        [CreditSource(name=name, number=number) for name, number in last_numbers.items()],
        update_conflicts=True,
        unique_fields=["name"],
        update_fields=["number", "booked_at"],
    )


def _book_one(batch: Credits) -> None:
    """Book a batch, or drop it: a batch that Postgres rejects must not block all others."""
    try:
        with transaction.atomic():
            _book([batch])
    except (DataError, IntegrityError):
        logger.exception("dropped batch %d of %s: it cannot be stored", batch.number, batch.source)


def _book(batches: Sequence[Credits]) -> None:
    used: Counter[PairKey] = Counter()
    for batch in batches:
        used.update(batch.count_pairs())
    lessons = [lesson for batch in batches for lesson in batch.lessons]
    parties = _read_parties(batches)
    archived = _lock_archived(lessons)
    _store_exchanges(used)
    _record_learners([lesson for lesson in lessons if lesson.taker_id in parties], archived)
    refuted = {key for key, row in archived.items() if row.is_refuted}
    _count_for_givers(used, _refuted_lessons(lessons, refuted), parties)


def _read_parties(batches: Sequence[Credits]) -> dict[int, str]:
    """Return the party (`Node.party`) of each node in these batches, by node id.

    Deleted nodes are left out.
    """
    named: set[int] = set()
    for batch in batches:
        _, _, givers, takers, _ = batch.pairs
        named.update(givers, takers)
    nodes = Node.objects.only("pk", "owner_id").in_bulk(named)
    return {node_id: node.party for node_id, node in nodes.items()}


def _archive_key(lesson: Lesson) -> _ArchiveKey:
    return lesson.season_id, lesson.giver_id, lesson.rollout_id


def _lock_archived(lessons: Sequence[Lesson]) -> dict[_ArchiveKey, ArchivedRollout]:
    """Return the used rollouts that are in the archive, locked, so that no check runs meanwhile."""
    if not lessons:
        return {}
    seasons, authors, ids = (
        set(values) for values in zip(*map(_archive_key, lessons), strict=True)
    )
    found = ArchivedRollout.objects.filter(season__in=seasons, author__in=authors, rollout__in=ids)
    locked = found.select_for_update(of=("self",)).order_by("pk")
    return {(row.season_id, row.author_id, row.rollout): row for row in locked}


def _refuted_lessons(lessons: Sequence[Lesson], refuted: set[_ArchiveKey]) -> Counter[PairKey]:
    """Count the lessons about the `refuted` rollouts, for each season, minute, giver and taker.

    A lesson is a node's report that it trained on a rollout.
    """
    return Counter(each.pair for each in lessons if _archive_key(each) in refuted)


def _count_for_givers(
    used: Mapping[PairKey, int], refuted: Counter[PairKey], parties: Mapping[int, str]
) -> None:
    """Add credits to the givers' `Contribution.used_by_others`.

    Left out are credits for refuted rollouts, credits over the limit for a pair of parties
    (`relay.pairs`), and credits whose giver or taker has been deleted.
    """
    offered: Counter[PartyPair] = Counter()
    requested: list[tuple[PartyPair, int, int]] = []
    for pair, count in used.items():
        season_id, minute, giver_id, taker_id = pair
        giver, taker = parties.get(giver_id), parties.get(taker_id)
        if giver is None or taker is None or (count := count - refuted[pair]) <= 0:
            continue
        between = PartyPair(season_id, minute, giver, taker)
        offered[between] += count
        requested.append((between, giver_id, count))
    remaining = admit_credits(sync_redis(), offered)
    totals: Counter[tuple[int, int]] = Counter()
    for between, giver_id, count in requested:
        counted = min(count, remaining[between])
        remaining[between] -= counted
        totals[between.season_id, giver_id] += counted
    _add_to_totals(totals)


def _add_to_totals(totals: Counter[tuple[int, int]]) -> None:
    """Add totals by (season id, node id) to `used_by_others`, locking rows in a fixed order."""
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
                _array(season for season, _ in totals),
                _array(giver for _, giver in totals),
                _array(totals.values()),
            ],
        )


def _store_exchanges(used: Mapping[PairKey, int]) -> None:
    """Add the uses to the exchanges of their hours.

    A missing exchange is created only in an hour that `_open_hours` returns; otherwise its uses are
    skipped. Uses of deleted seasons and nodes are skipped too.
    """
    if not used:
        return
    seasons, minutes, givers, takers = zip(*used, strict=True)
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO relay_exchange (season_id, hour, giver_id, taker_id, used)
            SELECT new.season, new.hour, new.giver, new.taker, new.used
            FROM (
                SELECT season, to_timestamp(minute / 3600 * 3600) AS hour, giver, taker,
                    sum(used)::bigint AS used
                FROM unnest(
                    %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[]
                ) AS given (season, minute, giver, taker, used)
                GROUP BY season, hour, giver, taker
            ) AS new
            JOIN judge_season ON judge_season.id = new.season
            JOIN nodes_node AS giver ON giver.id = new.giver
            JOIN nodes_node AS taker ON taker.id = new.taker
            WHERE new.hour = ANY(%s::timestamptz[]) OR EXISTS (
                SELECT FROM relay_exchange AS known
                WHERE (known.season_id, known.hour, known.giver_id, known.taker_id)
                    = (new.season, new.hour, new.giver, new.taker)
            )
            ON CONFLICT (season_id, hour, giver_id, taker_id)
            DO UPDATE SET used = relay_exchange.used + excluded.used
            """,
            [
                *map(_array, (seasons, minutes, givers, takers, used.values())),
                _open_hours(used),
            ],
        )


def _open_hours(used: Iterable[PairKey]) -> list[datetime]:
    """Return the hours of `used` in which exchanges may be created.

    These are the hours that would have at most MAX_PAIRS_PER_HOUR exchanges if all their pairs in
    `used` were new.
    """
    pairs = {(season, _hour_of(minute), giver, taker) for season, minute, giver, taker in used}
    added = Counter(hour for _, hour, *_ in pairs)
    rows = Exchange.objects.filter(hour__in=added).values_list("hour").annotate(Count("pk"))
    stored = dict(rows.order_by())
    return [h for h, new in added.items() if stored.get(h, 0) + new <= MAX_PAIRS_PER_HOUR]


def _hour_of(minute: int) -> datetime:
    """Return the beginning of the hour that contains `minute` (Unix seconds)."""
    return datetime.fromtimestamp(minute // 3600 * 3600, UTC)


def _array(numbers: Iterable[int]) -> str:
    """Return numbers as the text of a Postgres array; a list takes psycopg ten times as long."""
    return "{" + ",".join(map(str, numbers)) + "}"


def _record_learners(
    lessons: Sequence[Lesson], archived: Mapping[_ArchiveKey, ArchivedRollout]
) -> None:
    """Record the nodes that trained on archived rollouts, and update the rollouts' `learned_by`."""
    learned = [
        Learned(
            rollout=archived[_archive_key(each)],
            node_id=each.taker_id,
            at=datetime.fromtimestamp(each.at, UTC),
        )
        for each in lessons
        if _archive_key(each) in archived
    ]
    if not learned:
        return
    Learned.objects.bulk_create(learned, ignore_conflicts=True)
    learners = Learned.objects.filter(rollout=OuterRef("pk")).values("rollout")
    ArchivedRollout.objects.filter(pk__in={row.rollout_id for row in learned}).update(
        learned_by=Subquery(learners.annotate(count=Count("pk")).values("count"))
    )


def withdraw_credits(refuted: Iterable[ArchivedRollout]) -> None:
    """Subtract these rollouts' credits from their authors' `Contribution.used_by_others`.

    Call this in a transaction. Pass a rollout only once, because each call subtracts its credits
    again. Rows of `Exchange` are not changed.

    Credits over the limit for a pair of parties (`relay.pairs`) were never added, but are
    subtracted too. So a total may become too low, but it never becomes negative.
    """
    for row in refuted:
        if row.learned_by:
            giver = Contribution.objects.filter(season=row.season_id, node=row.author_id)
            remaining = Greatest(F("used_by_others") - row.learned_by, 0)
            giver.update(used_by_others=remaining)
