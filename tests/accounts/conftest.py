"""Accounts, and clients that are signed in."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from swarm_web.core.store import sync_redis

PASSWORD = "seven wise herons"


@pytest.fixture(autouse=True)
def fast_passwords_and_empty_counters(settings: Settings) -> None:
    """Use a fast password hasher, keep mail in memory, and clear the rate limits."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    sync_redis().flushdb()


@pytest.fixture
def olive(db: None) -> User:
    """A user with a password."""
    return User.objects.create_user("olive", "olive@example.org", PASSWORD)


@pytest.fixture
def signed_in(client: Client, olive: User) -> Client:
    """A client that is signed in as olive."""
    client.force_login(olive)
    return client
