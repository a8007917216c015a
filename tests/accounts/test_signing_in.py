"""Making an account, signing in and out, and what keeps strangers out."""

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
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from swarm_web.accounts.tasks import prune_sessions
from swarm_web.edge.login_limit import MAX_CHALLENGES
from tests.accounts.conftest import PASSWORD

pytestmark = pytest.mark.django_db
SECRET = "JBSWY3DPEHPK3PXP"


def sign_up(client: Client, name: str = "heron", **fields: str) -> Any:
    """Fill in the form for a new account and return the answer."""
    form = {"username": name, "password1": PASSWORD, "password2": PASSWORD}
    return client.post("/account/signup/", form | fields)


def sign_in(client: Client, name: str = "olive", *, path: str = "/account/login/") -> Any:
    """Sign in with a password and return the answer."""
    return client.post(path, {"login": name, "password": PASSWORD})


def is_signed_in(client: Client) -> bool:
    return client.get("/account/").status_code == 200


def demand_codes(user: User) -> None:
    """Let an account have an authenticator app as its second factor."""
    TOTP.activate(user, SECRET)
    RecoveryCodes.activate(user)


def current_code() -> str:
    """Return what the authenticator app shows."""
    counter = next(iter(yield_hotp_counters_from_time()))
    return str(format_hotp_value(hotp_value(SECRET, counter)))


def test_a_new_account_is_signed_in_and_led_to_its_page(client: Client) -> None:
    answer = sign_up(client)
    assert (answer.status_code, answer["Location"]) == (302, "/account/")
    assert is_signed_in(client)


@pytest.mark.parametrize(
    "name",
    ["he\u202eron", "her\u0000on", "he ron", "h\u0435ron", "a" * 41, "Olive", "admin", "a/b"],
)
def test_a_name_that_would_mislead_is_refused(client: Client, olive: User, name: str) -> None:
    answer = sign_up(client, name)
    assert answer.status_code == 200
    assert "errorlist" in answer.content.decode()
    assert User.objects.count() == 1


def test_nobody_makes_an_account_where_the_operator_does(
    client: Client, settings: Settings
) -> None:
    settings.SIGN_UP = False
    sign_up(client)
    assert not User.objects.exists()


@pytest.mark.parametrize("name", ["olive", "Olive", "olive@example.org"])
def test_one_signs_in_by_name_or_address(client: Client, olive: User, name: str) -> None:
    assert sign_in(client, name)["Location"] == "/account/"
    assert is_signed_in(client)


def test_signing_in_leads_on_to_this_site_only(client: Client, olive: User) -> None:
    assert sign_in(client, path="/account/login/?next=/rounds/")["Location"] == "/rounds/"
    client.logout()
    foreign = sign_in(client, path="/account/login/?next=https://evil.example/")
    assert foreign["Location"] == "/account/"


def test_signing_out_takes_a_click(signed_in: Client) -> None:
    signed_in.get("/account/logout/")
    assert is_signed_in(signed_in)
    signed_in.post("/account/logout/")
    assert not is_signed_in(signed_in)


def test_a_second_factor_is_asked_for(client: Client, olive: User) -> None:
    demand_codes(olive)
    assert sign_in(client)["Location"] == "/account/2fa/authenticate/"
    assert not is_signed_in(client)
    client.post("/account/2fa/authenticate/", {"code": current_code()})
    assert is_signed_in(client)


def test_codes_are_not_guessed_at(client: Client, olive: User) -> None:
    demand_codes(olive)
    sign_in(client)
    for _ in range(5):
        client.post("/account/2fa/authenticate/", {"code": "000000"})
    client.post("/account/2fa/authenticate/", {"code": current_code()})
    assert not is_signed_in(client)


def test_the_admin_is_no_way_around_a_second_factor(client: Client) -> None:
    operator = User.objects.create_superuser("otto", password=PASSWORD)
    demand_codes(operator)
    form = {"username": "otto", "password": PASSWORD, "login": "otto"}
    client.post("/admin/login/?next=/admin/", form)
    assert client.get("/admin/").status_code == 302
    asked = client.get("/admin/", follow=True)
    assert asked.redirect_chain[-1][0] == "/account/login/?next=%2Fadmin%2F"


def test_an_account_that_is_no_operators_opens_no_admin(signed_in: Client) -> None:
    assert signed_in.get("/admin/", follow=True).status_code == 403


def test_a_forgotten_password_is_replaced_by_mail(client: Client, olive: User) -> None:
    client.post("/account/password/reset/", {"email": "olive@example.org"})
    (message,) = mail.outbox
    link = re.search(r"http://testserver(/account/password/reset/key/\S+)", str(message.body))
    assert link is not None
    form = client.get(link[1], follow=True).request["PATH_INFO"]
    client.post(form, {"password1": "another long one", "password2": "another long one"})
    assert User.objects.get().check_password("another long one")


@pytest.mark.usefixtures("redis_away")
def test_one_signs_up_and_in_while_redis_is_away(client: Client) -> None:
    sign_up(client, "olive")
    client.logout()
    sign_in(client)
    assert is_signed_in(client)


def test_new_accounts_are_counted_by_address(client: Client) -> None:
    answers = [
        Client().post("/account/signup/", REMOTE_ADDR="192.0.2.1").status_code for _ in range(21)
    ]
    assert (answers[19], answers[20]) == (200, 429)
    assert client.post("/account/signup/", REMOTE_ADDR="192.0.2.2").status_code == 200


@pytest.mark.parametrize("path", ["login/", "signup/", "password/reset/"])
def test_no_page_offers_what_is_not_set_up(client: Client, path: str) -> None:
    assert "github" not in client.get(f"/account/{path}").content.decode().casefold()


@pytest.mark.parametrize("page", ["", "email/", "2fa/", "2fa/totp/activate/", "password/change/"])
def test_account_pages_are_kept_by_nobody(signed_in: Client, page: str) -> None:
    assert "no-store" in signed_in.get(f"/account/{page}")["Cache-Control"]


def test_the_header_leads_to_the_account(signed_in: Client) -> None:
    assert 'href="/account/"' in signed_in.get("/join/").content.decode()
    assert 'href="/account/login/"' in Client().get("/join/").content.decode()


def test_sessions_that_have_expired_are_deleted(signed_in: Client) -> None:
    Session.objects.create(session_key="old", expire_date=timezone.now() - timedelta(seconds=1))
    prune_sessions()
    assert "old" not in Session.objects.values_list("pk", flat=True)
    assert is_signed_in(signed_in)


def test_challenges_for_passkeys_fill_no_table(client: Client) -> None:
    by_script = {"X-Requested-With": "XMLHttpRequest"}
    for _ in range(MAX_CHALLENGES + 1):
        answer = Client().get("/account/2fa/webauthn/login/", headers=by_script)
    assert answer.status_code == 429
    assert Session.objects.count() == MAX_CHALLENGES
