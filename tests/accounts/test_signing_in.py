"""Test sign-up, login, logout, second factors and their limits."""

import re
from datetime import timedelta
from typing import Any

import pytest
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import (
    TOTP,
    format_hotp_value,
    hotp_value,
    yield_hotp_counters_from_time,
)
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.core import mail
from django.core.cache import cache
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from swarm_web.accounts.tasks import prune_sessions
from swarm_web.edge.login_limit import MAX_CHALLENGES, MAX_NAME_LENGTH
from tests.accounts.conftest import PASSWORD

pytestmark = pytest.mark.django_db
SECRET = "JBSWY3DPEHPK3PXP"


def sign_up(client: Client, name: str = "heron", **fields: str) -> Any:
    """Submit the sign-up form and return the response."""
    form = {"username": name, "password1": PASSWORD, "password2": PASSWORD}
    return client.post("/account/signup/", form | fields)


def sign_in(client: Client, name: str = "olive", *, path: str = "/account/login/") -> Any:
    """Log in with a password and return the response."""
    return client.post(path, {"login": name, "password": PASSWORD})


def is_signed_in(client: Client) -> bool:
    return client.get("/account/").status_code == 200


def activate_second_factor(user: User) -> None:
    """Activate an authenticator app as the second factor of an account."""
    TOTP.activate(user, SECRET)
    RecoveryCodes.activate(user)


def current_code() -> str:
    """Return the current code of the authenticator app."""
    _, counter, _ = yield_hotp_counters_from_time()
    return str(format_hotp_value(hotp_value(SECRET, counter)))


def test_sign_up_logs_in_and_redirects_to_the_account_page(client: Client) -> None:
    answer = sign_up(client)
    assert (answer.status_code, answer["Location"]) == (302, "/account/")
    assert is_signed_in(client)


@pytest.mark.parametrize(
    "name",
    ["he\u202eron", "her\u0000on", "he ron", "h\u0435ron", "a" * 41, "Olive", "admin", "a/b"],
)
def test_misleading_username_is_rejected(client: Client, olive: User, name: str) -> None:
    answer = sign_up(client, name)
    assert answer.status_code == 200
    assert "errorlist" in answer.content.decode()
    assert User.objects.count() == 1


def test_sign_up_creates_no_account_if_it_is_disabled(client: Client, settings: Settings) -> None:
    settings.SIGN_UP = False
    sign_up(client)
    assert not User.objects.exists()


@pytest.mark.parametrize("name", ["olive", "Olive", "olive@example.org"])
def test_login_accepts_username_and_email_address(client: Client, olive: User, name: str) -> None:
    assert sign_in(client, name)["Location"] == "/account/"
    assert is_signed_in(client)


def test_login_rejects_a_name_that_is_too_long(client: Client, olive: User) -> None:
    answer = sign_in(client, "a" * (MAX_NAME_LENGTH + 1))
    assert answer.context["form"].has_error("login", "max_length")


def test_login_redirects_only_to_this_site(client: Client, olive: User) -> None:
    assert sign_in(client, path="/account/login/?next=/rounds/")["Location"] == "/rounds/"
    client.logout()
    foreign = sign_in(client, path="/account/login/?next=https://evil.example/")
    assert foreign["Location"] == "/account/"


def test_logout_requires_a_post_request(signed_in: Client) -> None:
    signed_in.get("/account/logout/")
    assert is_signed_in(signed_in)
    signed_in.post("/account/logout/")
    assert not is_signed_in(signed_in)


def test_login_requires_the_second_factor(client: Client, olive: User) -> None:
    activate_second_factor(olive)
    assert sign_in(client)["Location"] == "/account/2fa/authenticate/"
    assert not is_signed_in(client)
    client.post("/account/2fa/authenticate/", {"code": current_code()})
    assert is_signed_in(client)


def test_code_of_the_second_factor_works_only_once(client: Client, olive: User) -> None:
    activate_second_factor(olive)
    code = current_code()
    for other in (client, Client()):
        sign_in(other)
        other.post("/account/2fa/authenticate/", {"code": code})
        # allauth stores there that a code was used, for a shorter time than the code is valid.
        cache.clear()
    assert is_signed_in(client)
    assert not is_signed_in(other)


def test_second_factor_is_blocked_after_five_wrong_codes(client: Client, olive: User) -> None:
    activate_second_factor(olive)
    sign_in(client)
    for _ in range(5):
        client.post("/account/2fa/authenticate/", {"code": "000000"})
    client.post("/account/2fa/authenticate/", {"code": current_code()})
    assert not is_signed_in(client)


def test_admin_login_does_not_bypass_the_second_factor(client: Client) -> None:
    operator = User.objects.create_superuser("otto", password=PASSWORD)
    activate_second_factor(operator)
    form = {"username": "otto", "password": PASSWORD, "login": "otto"}
    client.post("/admin/login/?next=/admin/", form)
    assert client.get("/admin/").status_code == 302
    asked = client.get("/admin/", follow=True)
    assert asked.redirect_chain[-1][0] == "/account/login/?next=%2Fadmin%2F"


def test_admin_is_forbidden_to_ordinary_accounts(signed_in: Client) -> None:
    assert signed_in.get("/admin/", follow=True).status_code == 403


def test_password_can_be_reset_by_email(client: Client, olive: User) -> None:
    client.post("/account/password/reset/", {"email": "olive@example.org"})
    (message,) = mail.outbox
    link = re.search(r"http://testserver(/account/password/reset/key/\S+)", str(message.body))
    assert link is not None
    form = client.get(link[1], follow=True).request["PATH_INFO"]
    client.post(form, {"password1": "another long one", "password2": "another long one"})
    assert User.objects.get().check_password("another long one")


@pytest.mark.usefixtures("redis_away")
def test_sign_up_and_login_work_while_redis_is_unavailable(client: Client) -> None:
    sign_up(client, "olive")
    client.logout()
    sign_in(client)
    assert is_signed_in(client)


def test_sign_up_requests_are_limited_per_network_address(client: Client) -> None:
    answers = [
        Client().post("/account/signup/", REMOTE_ADDR="192.0.2.1").status_code for _ in range(21)
    ]
    assert (answers[19], answers[20]) == (200, 429)
    assert client.post("/account/signup/", REMOTE_ADDR="192.0.2.2").status_code == 200


@pytest.mark.parametrize("path", ["login/", "signup/", "password/reset/"])
def test_github_is_not_offered_if_it_is_not_configured(client: Client, path: str) -> None:
    assert "github" not in client.get(f"/account/{path}").content.decode().casefold()


@pytest.mark.parametrize("page", ["", "email/", "2fa/", "2fa/totp/activate/", "password/change/"])
def test_account_pages_are_not_cached(signed_in: Client, page: str) -> None:
    assert "no-store" in signed_in.get(f"/account/{page}")["Cache-Control"]


def test_header_links_to_the_account_page_or_to_login(signed_in: Client) -> None:
    assert 'href="/account/"' in signed_in.get("/join/").content.decode()
    assert 'href="/account/login/"' in Client().get("/join/").content.decode()


def test_expired_sessions_are_deleted(signed_in: Client) -> None:
    Session.objects.create(session_key="old", expire_date=timezone.now() - timedelta(seconds=1))
    prune_sessions()
    assert "old" not in Session.objects.values_list("pk", flat=True)
    assert is_signed_in(signed_in)


def test_number_of_sessions_for_passkey_challenges_is_limited(client: Client) -> None:
    by_script = {"X-Requested-With": "XMLHttpRequest"}
    for _ in range(MAX_CHALLENGES + 1):
        answer = Client().get("/account/2fa/webauthn/login/", headers=by_script)
    assert answer.status_code == 429
    assert Session.objects.count() == MAX_CHALLENGES
