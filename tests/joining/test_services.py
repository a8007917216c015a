"""Test the services of joining: request, decision, collection of the token."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError
from django.utils import timezone

from swarm_web.accounts.services import delete_account
from swarm_web.core.errors import RequestError
from swarm_web.joining import services
from swarm_web.joining.models import JoinRequest
from swarm_web.joining.services import (
    DeviceFlowError,
    JoinRequester,
    collect,
    request_node,
    request_owner,
)
from swarm_web.nodes.models import Node
from swarm_web.nodes.services import authenticate, create_node, revoke_token, rotate_token

pytestmark = pytest.mark.django_db(transaction=True)

NOW = timezone.now()
REQUESTER = JoinRequester(network="192.0.2.1", client_version="0.3.0", model="tiny")


def make_owner() -> User:
    return User.objects.create_user("olive")


def later(**delta: float) -> datetime:
    return NOW + timedelta(**delta)


def error_of(device_code: str, *, now: datetime = NOW) -> str:
    with pytest.raises(DeviceFlowError) as refused:
        collect(device_code, now=now)
    return refused.value.error


def test_undecided_request_is_pending() -> None:
    _, secret = request_node(REQUESTER, now=NOW)
    assert error_of(secret) == "authorization_pending"


def test_approved_client_receives_the_token_of_a_new_node_of_the_account() -> None:
    request, secret = request_node(REQUESTER, now=NOW)
    owner = make_owner()
    services.approve_new(request, owner, name="heron", now=NOW)
    given = collect(secret, now=NOW)
    node = authenticate(given.access_token)
    assert node is not None
    assert (node.name, node.owner, given.node) == ("heron", owner, "heron")


def test_token_can_be_collected_again_after_a_lost_response() -> None:
    request, secret = request_node(REQUESTER, now=NOW)
    services.approve_new(request, make_owner(), name=None, now=NOW)
    assert collect(secret, now=NOW) == collect(secret, now=later(seconds=60))


def test_code_does_not_restore_the_old_token_after_a_rotation() -> None:
    request, secret = request_node(REQUESTER, now=NOW)
    node = services.approve_new(request, make_owner(), name=None, now=NOW)
    assert node is not None
    collect(secret, now=NOW)
    newer = rotate_token(node)
    assert error_of(secret) == "expired_token"
    assert authenticate(newer) == node


def test_database_contains_neither_the_device_code_nor_the_token() -> None:
    request, secret = request_node(REQUESTER, now=NOW)
    services.approve_new(request, make_owner(), name=None, now=NOW)
    token = collect(secret, now=NOW).access_token
    rows = str([*JoinRequest.objects.values(), *Node.objects.values()])
    assert secret not in rows
    assert token not in rows


def test_denied_request_returns_access_denied() -> None:
    request, secret = request_node(REQUESTER, now=NOW)
    services.deny(request)
    assert error_of(secret) == "access_denied"


def test_code_expires_for_the_client_and_the_account() -> None:
    request, secret = request_node(REQUESTER, now=NOW)
    after = later(minutes=15)
    assert error_of(secret, now=after) == "expired_token"
    assert services.find_open(request.user_code, now=after) is None


def test_approved_code_expires_if_it_is_not_collected() -> None:
    request, secret = request_node(REQUESTER, now=NOW)
    services.approve_new(request, make_owner(), name=None, now=NOW)
    assert error_of(secret, now=later(minutes=15)) == "expired_token"


def test_unknown_device_code_is_rejected() -> None:
    assert error_of("guessed") == "expired_token"


def test_code_can_be_decided_only_once() -> None:
    request, _ = request_node(REQUESTER, now=NOW)
    owner = make_owner()
    assert services.approve_new(request, owner, name="heron", now=NOW) is not None
    assert services.approve_new(request, owner, name="owl", now=NOW) is None
    assert not services.deny(request)
    assert [node.name for node in Node.objects.all()] == ["heron"]


def test_taken_name_leaves_the_code_open() -> None:
    create_node(name="heron")
    request, _ = request_node(REQUESTER, now=NOW)
    with pytest.raises(IntegrityError):
        services.approve_new(request, make_owner(), name="heron", now=NOW)
    assert services.find_open(request.user_code, now=NOW) is not None


def test_own_node_continues_with_a_new_token_after_collection() -> None:
    owner = make_owner()
    node, old = create_node(name="heron", owner=owner)
    request, secret = request_node(REQUESTER, now=NOW)
    services.approve_own(request, node)
    assert authenticate(old) == node  # until the new machine has its token
    assert authenticate(collect(secret, now=NOW).access_token) == node
    assert authenticate(old) is None


def test_client_that_polls_too_often_must_slow_down() -> None:
    request, secret = request_node(REQUESTER, now=NOW)
    error_of(secret)
    assert error_of(secret, now=later(seconds=0.5)) == "slow_down"
    request.refresh_from_db()
    assert request.interval_s == services.INTERVAL_S + services.INTERVAL_STEP_S


def test_interval_grows_no_longer_than_a_code_is_valid() -> None:
    request, secret = request_node(REQUESTER, now=NOW)
    longest = int(services.VALID_FOR.total_seconds())
    JoinRequest.objects.filter(pk=request.pk).update(interval_s=longest - 1, asked_at=NOW)
    assert error_of(secret) == "slow_down"
    request.refresh_from_db()
    assert request.interval_s == longest


def test_client_that_polls_at_its_interval_is_not_slowed_down() -> None:
    _, secret = request_node(REQUESTER, now=NOW)
    for turn in range(5):
        error = error_of(secret, now=later(seconds=turn * services.INTERVAL_S))
        assert error == "authorization_pending"


def test_number_of_code_requests_per_network_is_limited() -> None:
    for _ in range(services.REQUESTS_PER_TEN_MINUTES):
        request_node(REQUESTER, now=NOW)
    with pytest.raises(DeviceFlowError, match="ten minutes"):
        request_node(REQUESTER, now=NOW)
    request_node(JoinRequester(network="192.0.2.2"), now=NOW)
    request_node(REQUESTER, now=later(minutes=11))


def test_old_requests_are_deleted() -> None:
    request_node(REQUESTER, now=NOW)
    newer, _ = request_node(REQUESTER, now=later(days=2))
    services.prune_requests(now=later(days=2))
    assert list(JoinRequest.objects.all()) == [newer]


@pytest.mark.parametrize("change", [rotate_token, revoke_token])
def test_token_changed_after_the_approval_is_not_replaced(
    change: Callable[[Node], object],
) -> None:
    owner = make_owner()
    node, _ = create_node(owner=owner)
    request, secret = request_node(REQUESTER, now=NOW)
    services.approve_own(request, node)
    change(node)
    assert error_of(secret) == "expired_token"


@pytest.mark.parametrize("end", [revoke_token, lambda node: delete_account(node.owner)])
def test_node_revoked_again_after_the_approval_gets_no_token(
    end: Callable[[Node], object],
) -> None:
    node, _ = create_node(owner=make_owner())
    revoke_token(node)
    node.refresh_from_db()
    request, secret = request_node(REQUESTER, now=NOW)
    services.approve_own(request, node)
    end(node)
    assert error_of(secret) == "expired_token"


def test_token_cannot_be_collected_after_the_account_was_deleted() -> None:
    request, secret = request_node(REQUESTER, now=NOW)
    owner = make_owner()
    services.approve_new(request, owner, name=None, now=NOW)
    delete_account(owner)
    assert error_of(secret) == "expired_token"


def test_account_at_its_node_limit_can_neither_create_nor_claim_a_node(settings: Any) -> None:
    settings.NODES_PER_ACCOUNT = 1
    owner = make_owner()
    create_node(owner=owner)
    request, _ = request_node(REQUESTER, now=NOW)
    with pytest.raises(RequestError, match="may own 1"):
        services.approve_new(request, owner, name=None, now=NOW)
    _, token = create_node()
    claim, _ = request_owner(REQUESTER, token, now=NOW)
    with pytest.raises(RequestError, match="may own 1"):
        services.approve_claim(claim, owner, now=NOW)
    assert services.find_open(request.user_code, now=NOW) is not None


# ---- without an account


def test_anonymous_node_is_approved_automatically_if_the_site_allows_it(settings: Any) -> None:
    settings.ANONYMOUS_JOIN = True
    _, secret = request_node(REQUESTER, now=NOW, anonymous=True)
    node = authenticate(collect(secret, now=NOW).access_token)
    assert node is not None
    assert node.owner is None


def test_anonymous_node_is_created_once(settings: Any) -> None:
    settings.ANONYMOUS_JOIN = True
    _, secret = request_node(REQUESTER, now=NOW, anonymous=True)
    assert Node.objects.count() == 0
    assert collect(secret, now=NOW) == collect(secret, now=NOW)
    assert Node.objects.count() == 1


def test_anonymous_request_is_rejected_if_the_site_forbids_it(settings: Any) -> None:
    settings.ANONYMOUS_JOIN = False
    with pytest.raises(DeviceFlowError) as refused:
        request_node(REQUESTER, now=NOW, anonymous=True)
    assert refused.value.error == "anonymous_forbidden"


def test_number_of_anonymous_nodes_per_network_and_day_is_limited(settings: Any) -> None:
    settings.ANONYMOUS_JOIN, settings.ANONYMOUS_NODES_PER_DAY = True, 2
    for _ in range(2):
        request_node(REQUESTER, now=NOW, anonymous=True)
    with pytest.raises(DeviceFlowError, match="which is the limit"):
        request_node(REQUESTER, now=later(hours=23), anonymous=True)
    request_node(REQUESTER, now=later(hours=25), anonymous=True)


# ---- claiming a node


def test_claimed_node_keeps_its_token() -> None:
    node, token = create_node(name="heron")
    request, secret = request_owner(REQUESTER, token, now=NOW)
    owner = make_owner()
    assert services.approve_claim(request, owner, now=NOW)
    given = collect(secret, now=NOW)
    assert (given.node, given.access_token) == ("heron", "")
    node.refresh_from_db()
    assert node.owner == owner
    assert authenticate(token) == node


def test_node_with_an_owner_cannot_be_claimed() -> None:
    _, token = create_node(owner=make_owner())
    with pytest.raises(DeviceFlowError) as refused:
        request_owner(REQUESTER, token, now=NOW)
    assert refused.value.error == "already_owned"


def test_first_of_two_claims_succeeds() -> None:
    node, token = create_node()
    first, _ = request_owner(REQUESTER, token, now=NOW)
    second, secret = request_owner(REQUESTER, token, now=NOW)
    owner = make_owner()
    assert services.approve_claim(first, owner, now=NOW)
    assert not services.approve_claim(second, User.objects.create_user("other"), now=NOW)
    node.refresh_from_db()
    assert node.owner == owner
    assert error_of(secret) == "authorization_pending"


@pytest.mark.parametrize("change", [rotate_token, revoke_token])
def test_claim_with_a_changed_token_is_rejected(change: Callable[[Node], object]) -> None:
    node, token = create_node()
    claim, _ = request_owner(REQUESTER, token, now=NOW)
    change(node)
    assert not services.approve_claim(claim, make_owner(), now=NOW)
    node.refresh_from_db()
    assert node.owner is None


def test_claim_with_an_invalid_token_is_rejected() -> None:
    with pytest.raises(DeviceFlowError) as refused:
        request_owner(REQUESTER, "swarm_wrong", now=NOW)
    assert refused.value.status == 401
