"""Batches of credits are booked exactly once, independently of each other."""

import secrets
from contextlib import closing
from datetime import UTC, datetime
from unittest.mock import Mock

import msgspec
import pytest
import redis
from django.db import DatabaseError, connection

from judge.models import Season
from swarm_web.core.store import sync_redis
from swarm_web.nodes.models import Node
from swarm_web.relay.credits import Credits, PairColumns
from swarm_web.relay.keys import CREDITS
from swarm_web.relay.models import Contribution, Exchange, Learned
from swarm_web.relay.pairs import MAX_PER_MINUTE
from swarm_web.relay.services import crediting
from swarm_web.relay.services.crediting import book_credits
from swarm_web.relay.tally import Lesson, Pair
from tests.factories import make_archived_rollout
from tests.relay.hubs import NOW

MINUTE = int(NOW) // 60 * 60
GONE = 2**40

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_redis")]


@pytest.fixture(autouse=True)
def giver_part(season: Season, amber: Node) -> None:
    """Create a contribution of amber, as if it had published."""
    Contribution.objects.create(season=season, node=amber)


def send(
    *pairs: tuple[Pair, int],
    lessons: list[Lesson] | None = None,
    source: str | None = None,
    number: int = 1,
) -> None:
    """Send a batch as the web process `source`, by default a new one."""
    columns = [[*pair, count] for pair, count in pairs]
    batch = Credits(
        source or secrets.token_hex(8),
        number,
        msgspec.convert([list(column) for column in zip(*columns, strict=True)], PairColumns),
        lessons or [],
    )
    sync_redis().rpush(CREDITS, msgspec.msgpack.encode(batch))


def book() -> None:
    while book_credits():
        pass


def pair(season: Season, giver: Node, taker: Node, *, minute: int = MINUTE) -> Pair:
    return Pair(season.pk, minute, giver.pk, taker.pk)


def used(node: Node) -> int:
    return Contribution.objects.get(node=node).used_by_others


def test_limit_of_a_pair_is_shared_by_batches_of_several_processes(
    season: Season, amber: Node, bold: Node
) -> None:
    for _ in range(3):
        send((pair(season, amber, bold), MAX_PER_MINUTE // 2))
    book()
    assert used(amber) == MAX_PER_MINUTE
    assert Exchange.objects.get().used == 3 * (MAX_PER_MINUTE // 2)


def test_batch_is_booked_once(season: Season, amber: Node, bold: Node) -> None:
    send((pair(season, amber, bold), 3))
    assert (book_credits(), book_credits()) == (1, 0)
    assert used(amber) == 3


def test_exchange_is_stored_in_the_hour_of_its_minute(
    season: Season, amber: Node, bold: Node
) -> None:
    send((pair(season, amber, bold), 1))
    book()
    hour = datetime.fromtimestamp(MINUTE // 3600 * 3600, UTC)
    assert Exchange.objects.get().hour == hour


@pytest.mark.parametrize("gone", ["season", "giver", "taker"])
def test_credits_of_deleted_rows_are_skipped_and_others_are_booked(
    season: Season, amber: Node, bold: Node, gone: str
) -> None:
    lost = {
        "season": Pair(GONE, MINUTE, amber.pk, bold.pk),
        "giver": Pair(season.pk, MINUTE, GONE, bold.pk),
        "taker": Pair(season.pk, MINUTE, amber.pk, GONE),
    }[gone]
    lesson = Lesson(lost.season_id, lost.giver_id, "a", lost.taker_id, int(NOW))
    send((lost, 1), lessons=[lesson])
    send((pair(season, amber, bold), 2))
    book()
    assert (used(amber), Exchange.objects.get().used) == (2, 2)


def test_lesson_from_a_refuted_rollout_is_not_credited(
    season: Season, amber: Node, bold: Node
) -> None:
    row = make_archived_rollout(season, amber, solved=0)
    lesson = Lesson(season.pk, amber.pk, row.rollout, bold.pk, int(NOW))
    send((pair(season, amber, bold), 3), lessons=[lesson])
    book()
    assert used(amber) == 2
    assert Learned.objects.get().node_id == bold.pk


def test_node_that_reports_a_rollout_twice_learned_it_once(
    season: Season, amber: Node, bold: Node
) -> None:
    """A connection's list of delivered rollouts may be older than the last report."""
    row = make_archived_rollout(season, amber)
    lesson = Lesson(season.pk, amber.pk, row.rollout, bold.pk, int(NOW))
    for _ in range(2):
        send((pair(season, amber, bold), 1), lessons=[lesson])
        book()
    row.refresh_from_db()
    assert (row.learned_by, used(amber)) == (1, 2)


def test_undecodable_batch_does_not_affect_others(season: Season, amber: Node, bold: Node) -> None:
    send((pair(season, amber, bold), 1))
    sync_redis().rpush(CREDITS, b"\xc1")
    send((pair(season, amber, bold), 1))
    book()
    assert used(amber) == 2


def test_batches_are_booked_once_after_a_database_error(
    season: Season, amber: Node, bold: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    send((pair(season, amber, bold), 1))
    send((pair(season, amber, bold), 1))
    with monkeypatch.context() as patched:
        patched.setattr(crediting, "_store_exchanges", Mock(side_effect=DatabaseError))
        with pytest.raises(DatabaseError):
            book_credits()
    book()
    assert (used(amber), Exchange.objects.get().used) == (2, 2)


def test_batches_are_booked_once_after_a_redis_error(
    season: Season, amber: Node, bold: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    send((pair(season, amber, bold), 1))
    with monkeypatch.context() as patched:
        patched.setattr(crediting, "admit_credits", Mock(side_effect=redis.ConnectionError))
        with pytest.raises(redis.ConnectionError):
            book_credits()
    book()
    assert (used(amber), Exchange.objects.get().used) == (1, 1)


def test_booked_batch_that_is_still_on_the_list_is_not_booked_again(
    season: Season, amber: Node, bold: Node
) -> None:
    send((pair(season, amber, bold), 1))
    [packed] = sync_redis().lrange(CREDITS, 0, -1)
    book()
    sync_redis().rpush(CREDITS, packed)
    book()
    assert (used(amber), Exchange.objects.get().used) == (1, 1)


def test_batch_that_is_listed_twice_is_booked_once(season: Season, amber: Node, bold: Node) -> None:
    send((pair(season, amber, bold), 1))
    [packed] = sync_redis().lrange(CREDITS, 0, -1)
    sync_redis().rpush(CREDITS, packed)
    book()
    assert (used(amber), Exchange.objects.get().used) == (1, 1)


def test_later_batch_of_a_process_is_booked(season: Season, amber: Node, bold: Node) -> None:
    for number in (1, 2):
        send((pair(season, amber, bold), 1), source="a", number=number)
        book()
    assert used(amber) == 2


def test_batch_that_cannot_be_stored_does_not_block_others(
    season: Season, amber: Node, bold: Node
) -> None:
    too_large = 1 << 63
    send((pair(season, amber, bold), 1))
    send((pair(season, amber, bold), too_large))
    send((pair(season, amber, bold), 1))
    book()
    assert (used(amber), Exchange.objects.get().used) == (2, 2)
    assert not sync_redis().llen(CREDITS)


@pytest.mark.django_db(transaction=True)
def test_workers_do_not_book_concurrently(season: Season, amber: Node, bold: Node) -> None:
    send((pair(season, amber, bold), 1))
    with closing(connection.copy()) as other, other.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(hashtext('relay.credits'))")
        assert book_credits() == 0
        # A pooled connection stays open, so the lock must be released.
        cursor.execute("SELECT pg_advisory_unlock_all()")
    book()
    assert used(amber) == 1
