"""Operators see what was archived and delete what should not be public."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from swarm_web.relay.models import ArchivedRollout
from tests.factories import make_archived_rollout, make_node, make_season

pytestmark = pytest.mark.django_db


@pytest.fixture
def operator(db: None) -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("olive"))
    return client


def test_an_archived_rollout_can_be_deleted_with_what_hangs_on_it_and_not_edited(
    operator: Client,
) -> None:
    season, (amber, _), (bold, _) = make_season(), make_node("amber"), make_node("bold")
    rollout = make_archived_rollout(season, amber, learners=[bold])
    assert rollout.rollout in operator.get("/admin/relay/archivedrollout/").content.decode()
    page = f"/admin/relay/archivedrollout/{rollout.pk}/"
    assert operator.post(f"{page}change/", {"question": "x"}).status_code == 403
    operator.post(f"{page}delete/", {"post": "yes"})
    assert not ArchivedRollout.objects.exists()
