"""The relay's admin: archived rollouts, declarations and hand-out weights."""

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone

from swarm_web.nodes.models import Node
from swarm_web.relay.models import ArchivedRollout, Conduct, Contribution
from tests.factories import make_archived_rollout, make_node, make_season

pytestmark = pytest.mark.django_db


@pytest.fixture
def operator(db: None) -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("olive"))
    return client


def test_archived_rollout_can_be_deleted_with_its_learners_but_not_edited(
    operator: Client,
) -> None:
    season, (amber, _), (bold, _) = make_season(), make_node("amber"), make_node("bold")
    rollout = make_archived_rollout(season, amber, learners=[bold])
    assert rollout.rollout in operator.get("/admin/relay/archivedrollout/").content.decode()
    page = f"/admin/relay/archivedrollout/{rollout.pk}/"
    assert operator.post(f"{page}change/", {"question": "x"}).status_code == 403
    operator.post(f"{page}delete/", {"post": "yes"})
    assert not ArchivedRollout.objects.exists()


def lapsed_contribution() -> Contribution:
    return Contribution.objects.create(
        node=make_node("amber")[0],
        season=make_season(),
        declared_checked=9,
        declared_false=7,
        declarations_lapsed_at=timezone.now(),
    )


def restore(client: Client, part: Contribution) -> None:
    client.post("/admin/relay/contribution/", {"action": "restore", "_selected_action": [part.pk]})
    part.refresh_from_db()


def test_operator_finds_and_restores_lapsed_declarations(operator: Client) -> None:
    part = lapsed_contribution()
    Contribution.objects.create(node=make_node("bold")[0], season=part.season)
    page = operator.get("/admin/relay/contribution/?declarations_lapsed_at__isempty=0")
    assert "amber" in page.content.decode()
    assert "bold" not in page.content.decode()
    restore(operator, part)
    assert (part.declarations_lapsed_at, part.declared_false) == (None, 7)


def test_staff_with_view_permission_cannot_restore_declarations(db: None) -> None:
    viewer = User.objects.create_user("vera", is_staff=True)
    viewer.user_permissions.add(Permission.objects.get(codename="view_contribution"))
    client = Client()
    client.force_login(viewer)
    part = lapsed_contribution()
    restore(client, part)
    assert part.declarations_lapsed_at is not None


def decide(client: Client, part: Contribution, action: str) -> None:
    client.post("/admin/relay/contribution/", {"action": action, "_selected_action": [part.pk]})


@pytest.mark.parametrize(
    ("action", "level", "pinned"),
    [("withhold", "withheld", True), ("hand_out", "full", False), ("exempt", "full", True)],
)
def test_operator_sets_the_hand_out_weight_and_it_is_logged(
    operator: Client, action: str, level: str, pinned: bool
) -> None:
    part = lapsed_contribution()
    decide(operator, part, action)
    found = Conduct.objects.get(node=part.node)
    assert (found.level, found.pinned) == (level, pinned)
    assert f"Hand-out: {level}" in LogEntry.objects.get().change_message
    page = operator.get(f"/admin/relay/conduct/?level__exact={level}").content.decode()
    assert "amber" in page


def test_staff_with_view_permission_cannot_withhold_rollouts(db: None) -> None:
    viewer = User.objects.create_user("vera", is_staff=True)
    viewer.user_permissions.add(Permission.objects.get(codename="view_contribution"))
    client = Client()
    client.force_login(viewer)
    decide(client, lapsed_contribution(), "withhold")
    assert not Conduct.objects.exists()


def test_conduct_can_be_deleted_only_with_its_node(operator: Client) -> None:
    part = lapsed_contribution()
    decide(operator, part, "withhold")
    row = Conduct.objects.get()
    page = f"/admin/relay/conduct/{row.pk}/delete/"
    assert operator.post(page, {"post": "yes"}).status_code == 403
    chosen = {"action": "delete_selected", "_selected_action": [row.pk], "post": "yes"}
    operator.post("/admin/relay/conduct/", chosen)
    assert Conduct.objects.exists()
    operator.post(f"/admin/nodes/node/{part.node_id}/delete/", {"post": "yes"})
    assert not Node.objects.exists()
