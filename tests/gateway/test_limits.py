"""Token buckets: for messages, for bytes, and by key."""

import pytest

from swarm_web.gateway.limits import Allowance, KeyedBuckets, TokenBucket


def test_burst_is_allowed_and_the_next_message_waits() -> None:
    bucket = TokenBucket(rate=2, burst=3, now=0)
    assert [bucket.take(now=0) for _ in range(4)] == [0, 0, 0, 0.5]


def test_tokens_are_refilled_at_the_rate() -> None:
    bucket = TokenBucket(rate=2, burst=1, now=0)
    assert bucket.take(now=0) == 0
    assert bucket.take(now=0.25) == 0.25
    assert bucket.take(now=0.5) == 0


def test_refused_message_takes_no_token() -> None:
    bucket = TokenBucket(rate=1, burst=1, now=0)
    bucket.take(now=0)
    for _ in range(100):
        bucket.take(now=0.5)
    assert bucket.take(now=1) == 0


def test_idle_bucket_saves_at_most_a_burst() -> None:
    bucket = TokenBucket(rate=10, burst=2, now=0)
    assert [bucket.take(now=3600) == 0 for _ in range(3)] == [True, True, False]


def test_rate_of_zero_is_unlimited() -> None:
    bucket = TokenBucket(rate=0, burst=0, now=0)
    assert [bucket.take(now=0) for _ in range(3)] == [0, 0, 0]


def test_blocked_bucket_refuses_until_the_block_ends() -> None:
    bucket = TokenBucket(rate=2, burst=10, now=0)
    bucket.block(30, now=5)
    assert bucket.take(now=5) == 30
    assert bucket.take(now=34.9) > 0
    assert bucket.take(now=35.1) == 0


# ---- messages and bytes


def make_allowance() -> Allowance:
    return Allowance(
        messages=TokenBucket(rate=10, burst=100, now=0),
        bytes=TokenBucket(rate=1000, burst=5000, now=0),
    )


def test_message_above_the_remaining_bytes_is_allowed_and_delays_the_next() -> None:
    allowance = make_allowance()
    allowance.wait(now=0)
    allowance.spend(8000)
    assert allowance.wait(now=0) == pytest.approx(3.001)
    assert allowance.wait(now=3.1) == 0


def test_small_messages_are_limited_by_number() -> None:
    allowance = make_allowance()
    for _ in range(100):
        assert allowance.wait(now=0) == 0
        allowance.spend(1)
    assert allowance.wait(now=0) == pytest.approx(0.1)


# ---- by key


def make_bucket(now: float) -> TokenBucket:
    return TokenBucket(rate=1, burst=2, now=now)


def test_bucket_is_removed_only_when_it_is_full() -> None:
    keyed = KeyedBuckets(make_bucket)
    keyed.get("flooder", now=0).block(1_000_000, now=0)
    for number in range(5000):
        keyed.get(number, now=number)
    assert "flooder" in keyed
    assert keyed.get("flooder", now=5000).take(now=5000) > 0
    assert len(keyed) < 2100


def test_number_of_keyed_buckets_is_bounded() -> None:
    keyed = KeyedBuckets(make_bucket, max_buckets=4000)
    for number in range(20_000):
        keyed.get(number, now=0).spend()
        assert len(keyed) <= 4000
