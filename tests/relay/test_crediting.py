"""Batches of credits are booked once, and none holds up or loses the others."""

from datetime import UTC, datetime

import msgspec
import pytest
from django.db import DatabaseError

from judge.models import Season
from swarm_web.nodes.models import Node
from swarm_web.relay.keys import CREDITS
from swarm_web.relay.models import Contribution, Exchange, Learned
from swarm_web.relay.pairs import MOST_A_MINUTE
from swarm_web.relay.services import book_credits, crediting
from swarm_web.relay.tally import Credits, Lesson, Pair
from swarm_web.store import sync_redis
from tests.factories import make_archived_rollout
from tests.relay.hubs import NOW

MINUTE = int(NOW) // 60 * 60
GONE = 2**40

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("nothing_noted")]


@pytest.fixture(autouse=True)
def giver_part(season: Season, amber: Node) -> None:
    """Amber has published, so it has a contribution."""
    Contribution.objects.create(season=season, node=amber)


def send(*pairs: tuple[Pair, int], lessons: list[Lesson] | None = None) -> None:
    """Let a web process send a batch."""
    batch = Credits(list(pairs), lessons or [])
    sync_redis().rpush(CREDITS, msgspec.msgpack.encode(batch))


def book() -> None:
    while book_credits():
        pass


def pair(season: Season, giver: Node, taker: Node, *, minute: int = MINUTE) -> Pair:
    return Pair(season.pk, minute, giver.pk, taker.pk)


def used(node: Node) -> int:
    return Contribution.objects.get(node=node).used_by_others


def test_batches_of_several_processes_share_the_limit_of_a_pair(
    season: Season, amber: Node, bold: Node
) -> None:
    for _ in range(3):
        send((pair(season, amber, bold), MOST_A_MINUTE // 2))
    book()
    assert used(amber) == MOST_A_MINUTE
    assert Exchange.objects.get().used == 3 * (MOST_A_MINUTE // 2)


def test_a_batch_is_booked_once(season: Season, amber: Node, bold: Node) -> None:
    send((pair(season, amber, bold), 3))
    assert (book_credits(), book_credits()) == (1, 0)
    assert used(amber) == 3


def test_the_hour_of_an_exchange_is_that_of_the_minute(
    season: Season, amber: Node, bold: Node
) -> None:
    send((pair(season, amber, bold), 1))
    book()
    hour = datetime.fromtimestamp(MINUTE // 3600 * 3600, UTC)
    assert Exchange.objects.get().hour == hour


@pytest.mark.parametrize("gone", ["season", "giver", "taker"])
def test_what_is_gone_is_left_out_and_loses_nothing_of_the_others(
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


def test_a_lesson_of_a_refuted_rollout_does_not_count_for_the_giver(
    season: Season, amber: Node, bold: Node
) -> None:
    row = make_archived_rollout(season, amber, solved=0)
    lesson = Lesson(season.pk, amber.pk, row.rollout, bold.pk, int(NOW))
    send((pair(season, amber, bold), 3), lessons=[lesson])
    book()
    assert used(amber) == 2
    assert Learned.objects.get().node_id == bold.pk


def test_a_batch_that_cannot_be_read_loses_nothing_of_the_others(
    season: Season, amber: Node, bold: Node
) -> None:
    send((pair(season, amber, bold), 1))
    sync_redis().rpush(CREDITS, b"\xc1")
    send((pair(season, amber, bold), 1))
    book()
    assert used(amber) == 2


def test_batches_that_could_not_be_booked_are_booked_later_and_once(
    season: Season, amber: Node, bold: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise DatabaseError("away")

    send((pair(season, amber, bold), 1))
    send((pair(season, amber, bold), 1))
    with monkeypatch.context() as patched:
        patched.setattr(crediting, "_store_flows", fail)
        with pytest.raises(DatabaseError):
            book_credits()
    book()
    assert (used(amber), Exchange.objects.get().used) == (2, 2)
