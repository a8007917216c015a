"""Test the limit of login attempts."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from swarm_web.core.store import sync_redis
from swarm_web.edge.login_limit import MAX_PER_ADDRESS, MAX_PER_NAME, PERIOD_S, read_name

PASSWORD = "a long enough one"
HERE = "192.0.2.1"


@pytest.fixture(autouse=True)
def olive(db: None, settings: Settings) -> None:
    """A superuser with a fast password hasher, and empty counters."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    User.objects.create_superuser("olive", password=PASSWORD)
    sync_redis().flushdb()


def log_in(
    client: Client, *, name: str = "olive", password: str = "wrong", address: str = HERE
) -> Any:
    """Try to log in and return the response."""
    form = {"login": name, "password": password}
    return client.post("/account/login/", form, REMOTE_ADDR=address)


def use_up_address(client: Client, *, address: str = HERE) -> None:
    """Fail as often as an address may."""
    for _ in range(MAX_PER_ADDRESS):
        assert log_in(client, address=address).status_code == 200


def use_up_name(client: Client) -> None:
    """Fail as often as a name may, from several addresses."""
    for last in range(MAX_PER_NAME // MAX_PER_ADDRESS):
        use_up_address(client, address=f"192.0.2.{100 + last}")


def test_too_many_wrong_passwords_return_429_with_retry_after(client: Client) -> None:
    use_up_address(client)
    refusal = log_in(client, password=PASSWORD)
    assert refusal.status_code == 429
    assert 0 < int(refusal["Retry-After"]) <= PERIOD_S
    assert refusal.json()["code"] == "login.limited"


def test_count_that_lost_its_expiry_gets_one_with_the_next_attempt(client: Client) -> None:
    use_up_address(client)
    [count] = sync_redis().keys("logins:address:*")
    sync_redis().persist(count)
    assert 0 < int(log_in(client)["Retry-After"]) <= PERIOD_S
    assert 0 < sync_redis().ttl(count) <= PERIOD_S


def test_limit_of_an_address_does_not_affect_other_addresses(client: Client) -> None:
    use_up_address(client)
    assert log_in(client, address="192.0.2.2", password=PASSWORD).status_code == 302


def test_limit_of_an_address_covers_other_names(client: Client) -> None:
    use_up_address(client)
    assert log_in(client, name="oscar").status_code == 429


@pytest.mark.parametrize("name", ["olive", " olive", "ｏlive", "OLIVE"])
def test_limit_of_a_name_covers_all_addresses_and_spellings(client: Client, name: str) -> None:
    use_up_name(client)
    assert log_in(client, name=name, address="192.0.2.9").status_code == 429
    assert log_in(client, name="oscar", address="192.0.2.9").status_code == 200


def test_very_long_name_is_not_normalized() -> None:
    """Normalizing a megabyte of unordered combining marks takes minutes and blocks the process."""
    marks = "\u0301\u0316" * 200
    assert read_name("q" + marks) == "q" + marks
    assert read_name("q" + marks[:2]) == "q\u0316\u0301"


def test_attempts_from_one_address_do_not_lock_a_name(client: Client) -> None:
    for _ in range(2 * MAX_PER_NAME):
        log_in(client)
    assert log_in(client, address="192.0.2.2", password=PASSWORD).status_code == 302


def test_successful_logins_are_not_counted() -> None:
    """Neither for the address, which many people may share, nor for the name."""
    for attempt in range(MAX_PER_NAME + 1):
        # allauth itself limits an address to 30 logins per minute.
        address = HERE if attempt % 2 else "192.0.2.2"
        assert log_in(Client(), password=PASSWORD, address=address).status_code == 302


def test_login_to_another_account_does_not_reset_the_count(client: Client) -> None:
    User.objects.create_user("mallory", password=PASSWORD)
    for _ in range(MAX_PER_ADDRESS - 1):
        log_in(client)
    assert log_in(Client(), name="mallory", password=PASSWORD).status_code == 302
    assert log_in(client).status_code == 200
    assert log_in(client).status_code == 429


def test_browser_receives_an_html_page(client: Client) -> None:
    use_up_address(client)
    form = {"login": "olive", "password": "wrong"}
    html = {"Accept": "text/html"}
    refusal = client.post("/account/login/", form, REMOTE_ADDR=HERE, headers=html)
    assert refusal.status_code == 429
    assert refusal["Content-Type"].startswith("text/html")
    assert b"Too many attempts" in refusal.content


@pytest.mark.usefixtures("redis_away")
def test_login_works_while_redis_is_unavailable(client: Client) -> None:
    assert log_in(client, password=PASSWORD).status_code == 302
