"""Test optional sign-in settings of an operator: GitHub and mandatory e-mail verification."""

import re

import httpx
import pytest
from django.contrib.auth.models import User
from django.core import mail
from django.test import Client
from pytest_django import Settings

from tests.accounts.conftest import PASSWORD
from tests.sockets import PATIENCE_S
from tests.web import serving

GITHUB = {"GITHUB_CLIENT_ID": "an-id", "GITHUB_CLIENT_SECRET": "a-secret"}


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_github_login_is_offered_if_it_is_configured() -> None:
    with serving(**GITHUB) as site, httpx.Client(base_url=site, timeout=PATIENCE_S) as browser:
        page = browser.get("/account/login/")
        assert 'href="/account/github/login/' in page.text
        assert "form-action 'self' https://github.com" in page.headers["content-security-policy"]
        browser.get("/account/github/login/")
        form = {"csrfmiddlewaretoken": browser.cookies["csrftoken"]}
        answer = browser.post("/account/github/login/", data=form)
    assert answer.headers["location"].startswith("https://github.com/login/oauth/authorize?")
    assert "client_id=an-id" in answer.headers["location"]


@pytest.mark.django_db
def test_mandatory_verification_requires_following_the_mailed_link(
    client: Client, settings: Settings
) -> None:
    settings.ACCOUNT_EMAIL_VERIFICATION = "mandatory"
    settings.ACCOUNT_SIGNUP_FIELDS = ["username*", "email*", "password1*"]
    form = {"username": "heron", "email": "heron@example.org", "password1": PASSWORD}
    client.post("/account/signup/", form)
    assert client.get("/account/").status_code == 302
    (message,) = mail.outbox
    link = re.search(r"http://testserver(/account/confirm-email/\S+)", str(message.body))
    assert link is not None
    client.post(link[1])
    client.post("/account/login/", {"login": "heron", "password": PASSWORD})
    assert client.get("/account/").status_code == 200
    assert User.objects.count() == 1
