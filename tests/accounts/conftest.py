"""People with accounts, and browsers in which they are signed in."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from swarm_web.core.store import sync_redis

PASSWORD = "seven wise herons"


@pytest.fixture(autouse=True)
def quick_and_uncounted(settings: Settings) -> None:
    """Look at passwords quickly, and let nothing have been counted so far."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    sync_redis().flushdb()


@pytest.fixture
def olive(db: None) -> User:
    """Somebody with an account."""
    return User.objects.create_user("olive", "olive@example.org", PASSWORD)


@pytest.fixture
def signed_in(client: Client, olive: User) -> Client:
    """Olive's browser."""
    client.force_login(olive)
    return client
