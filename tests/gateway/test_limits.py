"""The token bucket: how many messages a connection may send."""

from swarm_web.gateway.limits import TokenBucket


def test_a_burst_is_allowed_at_once_and_no_more() -> None:
    bucket = TokenBucket(rate=2, burst=3, now=0)
    assert [bucket.take(now=0) for _ in range(4)] == [0, 0, 0, 0.5]


def test_tokens_come_back_at_the_rate() -> None:
    bucket = TokenBucket(rate=2, burst=1, now=0)
    assert bucket.take(now=0) == 0
    assert bucket.take(now=0.25) == 0.25
    assert bucket.take(now=0.5) == 0


def test_a_refused_message_costs_no_token() -> None:
    bucket = TokenBucket(rate=1, burst=1, now=0)
    bucket.take(now=0)
    for _ in range(100):
        bucket.take(now=0.5)
    assert bucket.take(now=1) == 0


def test_an_idle_hour_saves_up_no_more_than_a_burst() -> None:
    bucket = TokenBucket(rate=10, burst=2, now=0)
    assert [bucket.take(now=3600) == 0 for _ in range(3)] == [True, True, False]
