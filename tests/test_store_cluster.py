"""Test that all uses of Redis work with a real cluster of three masters."""

import asyncio
import re
import time
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
import redis.exceptions
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client, RequestFactory
from django.utils import timezone
from pytest_django import Settings

from swarm_web.board.pace import read_pace, sample_totals
from swarm_web.core import counters, heartbeat
from swarm_web.core.attempts import count_attempt
from swarm_web.core.bus import VIEWERS, switchboard
from swarm_web.core.errors import RequestError
from swarm_web.core.refusals import pending_refusals, read_refusals, record_refusal
from swarm_web.core.store import async_redis, broker_redis, sync_redis
from swarm_web.core.store_clock import store_clock
from swarm_web.core.store_version import check_store
from swarm_web.dashboard.api.reading import AddressThrottle
from swarm_web.edge.login_limit import MAX_PER_ADDRESS
from swarm_web.joining.pages import MAX_WRONG_CODES
from swarm_web.joining.services import JoinRequester, request_node
from swarm_web.notifications.services.noticing import update_watch
from swarm_web.relay.pairs import MAX_PER_MINUTE, PartyPair, admit_credits
from tests.processes import PROJECT
from tests.valkey_cluster import Cluster

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("in_cluster")]

MOST_PATIENCE_S = 2.0
NOW = datetime(2026, 1, 1, tzinfo=UTC)
# Every module that uses the store, tested here or in tests/relay/test_cluster.py.
TESTED = {
    "board/pace",
    "celery",
    "core/attempts",
    "core/bus",
    "core/counters",
    "core/heartbeat",
    "core/refusals",
    "core/store_clock",
    "dashboard/api/reading",
    "dashboard/operations/health",
    "dashboard/operations/metrics",
    "edge/shared_cache",
    "gateway/pulse",
    "gateway/roster",
    "notifications/services/noticing",
    "relay/hub",
    "relay/selectors/pooled",
    "relay/services/archiving",
    "relay/services/conduct",
    "relay/services/crediting",
    "relay/services/declarations",
}


def test_cluster_rejects_a_command_with_keys_of_several_servers() -> None:
    with pytest.raises(redis.exceptions.RedisError, match="slot"):
        sync_redis().mget(["one", "two", "three"])


def test_heartbeats_of_all_parts_are_read() -> None:
    for part in heartbeat.SitePart:
        heartbeat.stamp(part, now=NOW)
    assert heartbeat.read_ages(now=NOW) == dict.fromkeys(heartbeat.SitePart, 0.0)


async def test_silence_of_web_processes_is_measured() -> None:
    await heartbeat.stamp_web()
    assert heartbeat.web_silence() is not None


def test_attempts_above_the_limit_are_rejected() -> None:
    def attempt() -> None:
        count_attempt("tries", limit=2, period_s=60, code="too.many", message="Too many.")

    attempt()
    attempt()
    with pytest.raises(RequestError):
        attempt()


def test_successful_logins_are_not_counted_as_attempts(
    db: None, client: Client, settings: Settings
) -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    User.objects.create_user("olive", password="a long enough one")
    form = {"login": "olive", "password": "a long enough one"}
    codes = set()
    for _ in range(MAX_PER_ADDRESS + 1):
        codes.add(client.post("/account/login/", form).status_code)
        client.logout()
    assert codes == {302}


def test_right_codes_of_clients_are_not_counted_as_attempts(db: None, client: Client) -> None:
    client.force_login(User.objects.create_user("olive"))
    requester = JoinRequester(network="127.0.0.1", client_version="0.3.0", model="tiny")
    request, _ = request_node(requester, now=timezone.now())
    pages = [client.get(f"/device/?code={request}") for _ in range(MAX_WRONG_CODES + 1)]
    assert {page.status_code for page in pages} == {200}


async def test_counters_add_up() -> None:
    counters.count("refused", "rate.limited")
    counters.count("refused", "rate.limited", by=2)
    await counters.pending_counts().flush()
    assert counters.read_all() == {"refused": {"rate.limited": 3}}


async def test_refusals_of_a_node_are_recorded() -> None:
    for node_id in range(8):  # on all three servers
        record_refusal(node_id, code="rate.limited", message="Slower.", now=NOW)
        await pending_refusals().flush()
        refusals = read_refusals(node_id)
        assert refusals is not None
        assert refusals.last is not None
        assert (refusals.counts, refusals.last.at) == ({"rate.limited": 1}, NOW)


def test_pace_of_rollouts_is_measured(db: None) -> None:
    sample_totals(1, now=NOW)
    later = NOW + timedelta(seconds=60)
    sample_totals(1, now=later)
    pace = read_pace(1, now=later)
    assert pace is not None
    assert pace.seconds == 60


def test_shared_cache_stores_single_and_multiple_values() -> None:
    assert cache.add("one", 1)
    assert not cache.add("one", 2)
    cache.set_many({"two": 2, "three": 3})
    assert cache.get_many(["one", "two", "three"]) == {"one": 1, "two": 2, "three": 3}
    cache.delete_many(["one", "two"])
    assert cache.get("one") is None


def test_requests_of_an_address_are_counted() -> None:
    request = RequestFactory().get("/")
    assert [AddressThrottle().count(request) for _ in range(2)] == [1, 2]


def test_credits_of_pairs_are_counted_per_season() -> None:
    pairs = [PartyPair(season, 0, "amber", "bold") for season in range(8)]
    assert admit_credits(sync_redis(), Counter(pairs)) == dict.fromkeys(pairs, 1)
    over = admit_credits(sync_redis(), dict.fromkeys(pairs, MAX_PER_MINUTE))
    assert over == dict.fromkeys(pairs, MAX_PER_MINUTE - 1)


def test_watch_over_silent_nodes_continues() -> None:
    assert update_watch(now=NOW).since == update_watch(now=NOW).since


async def test_message_on_any_server_reaches_a_subscriber() -> None:
    rung: asyncio.Queue[str] = asyncio.Queue()
    board = switchboard()
    await board.listen(VIEWERS, rung.put_nowait)
    for number in range(8):
        sync_redis().publish(VIEWERS, str(number))
    assert [await asyncio.wait_for(rung.get(), 10) for _ in range(8)] == [*map(str, range(8))]
    await board.close()


async def test_store_clock_uses_one_server() -> None:
    await store_clock().query()
    assert abs(store_clock().ahead_s()) < 1


async def test_cluster_passes_the_version_check() -> None:
    await check_store(async_redis())


def test_queue_is_on_a_separate_server() -> None:
    assert not broker_redis().info("cluster")["cluster_enabled"]


def test_every_module_that_uses_the_store_is_listed() -> None:
    found = {
        str(path.relative_to(PROJECT / "swarm_web").with_suffix(""))
        for path in (PROJECT / "swarm_web").rglob("*.py")
        if re.search(r"^from swarm_web\.core\.store import", path.read_text(), re.MULTILINE)
    }
    assert found == TESTED


async def test_unreachable_cluster_raises_redis_errors(settings: Settings) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    sync_redis.cache_clear()
    with pytest.raises(redis.exceptions.RedisError):
        sync_redis()
    with pytest.raises(redis.exceptions.RedisError):
        await async_redis().get("key")
    pipeline = async_redis().pipeline(transaction=False)
    pipeline.get("key")
    with pytest.raises(redis.exceptions.RedisError):
        await pipeline.execute()
    with pytest.raises(redis.exceptions.RedisError):
        await async_redis().pubsub().psubscribe("bus.*")


# This test must be the last one, because it leaves the cluster broken.
async def test_attempts_are_neither_rejected_nor_delayed_while_a_server_is_down(
    valkey: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    for master in valkey.masters:
        master.kill()
        start = time.monotonic()
        with suppress(redis.exceptions.RedisError):
            await async_redis().incr("key")
        count_attempt("tries", limit=1, period_s=60, code="too.many", message="Too many.")
        assert time.monotonic() - start < MOST_PATIENCE_S
    assert "could not count an attempt" in caplog.text
