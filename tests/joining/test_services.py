"""A client asks for a token, a person decides, the client collects it."""

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
ASKER = JoinRequester(network="192.0.2.1", client_version="0.3.0", model="tiny")


def make_owner() -> User:
    return User.objects.create_user("olive")


def later(**delta: float) -> datetime:
    return NOW + timedelta(**delta)


def error_of(device_code: str, *, now: datetime = NOW) -> str:
    with pytest.raises(DeviceFlowError) as refused:
        collect(device_code, now=now)
    return refused.value.error


def test_a_client_waits_until_somebody_decides() -> None:
    _, secret = request_node(ASKER, now=NOW)
    assert error_of(secret) == "authorization_pending"


def test_an_approved_client_gets_the_token_of_a_new_node_of_the_person() -> None:
    request, secret = request_node(ASKER, now=NOW)
    owner = make_owner()
    services.approve_new(request, owner, name="heron", now=NOW)
    given = collect(secret, now=NOW)
    node = authenticate(given.access_token)
    assert node is not None
    assert (node.name, node.owner, given.node) == ("heron", owner, "heron")


def test_a_reply_that_is_lost_can_be_asked_for_again() -> None:
    request, secret = request_node(ASKER, now=NOW)
    services.approve_new(request, make_owner(), name=None, now=NOW)
    assert collect(secret, now=NOW) == collect(secret, now=later(seconds=60))


def test_a_code_gives_no_old_token_back_to_a_node_with_a_newer_one() -> None:
    request, secret = request_node(ASKER, now=NOW)
    node = services.approve_new(request, make_owner(), name=None, now=NOW)
    assert node is not None
    collect(secret, now=NOW)
    newer = rotate_token(node)
    assert error_of(secret) == "expired_token"
    assert authenticate(newer) == node


def test_neither_the_clients_secret_nor_its_token_is_in_the_database() -> None:
    request, secret = request_node(ASKER, now=NOW)
    services.approve_new(request, make_owner(), name=None, now=NOW)
    token = collect(secret, now=NOW).access_token
    rows = str([*JoinRequest.objects.values(), *Node.objects.values()])
    assert secret not in rows
    assert token not in rows


def test_a_declined_client_is_told_so() -> None:
    request, secret = request_node(ASKER, now=NOW)
    services.deny(request)
    assert error_of(secret) == "access_denied"


def test_a_code_expires_for_the_client_and_the_person() -> None:
    request, secret = request_node(ASKER, now=NOW)
    after = later(minutes=15)
    assert error_of(secret, now=after) == "expired_token"
    assert services.find_open(request.user_code, now=after) is None


def test_an_approved_code_can_still_not_be_collected_late() -> None:
    request, secret = request_node(ASKER, now=NOW)
    services.approve_new(request, make_owner(), name=None, now=NOW)
    assert error_of(secret, now=later(minutes=15)) == "expired_token"


def test_an_unknown_secret_gets_nothing() -> None:
    assert error_of("guessed") == "expired_token"


def test_a_code_is_decided_once() -> None:
    request, _ = request_node(ASKER, now=NOW)
    owner = make_owner()
    assert services.approve_new(request, owner, name="heron", now=NOW) is not None
    assert services.approve_new(request, owner, name="owl", now=NOW) is None
    assert not services.deny(request)
    assert [node.name for node in Node.objects.all()] == ["heron"]


def test_a_name_that_is_taken_leaves_the_code_open() -> None:
    create_node(name="heron")
    request, _ = request_node(ASKER, now=NOW)
    with pytest.raises(IntegrityError):
        services.approve_new(request, make_owner(), name="heron", now=NOW)
    assert services.find_open(request.user_code, now=NOW) is not None


def test_a_node_continues_on_another_machine_under_its_name() -> None:
    owner = make_owner()
    node, old = create_node(name="heron", owner=owner)
    request, secret = request_node(ASKER, now=NOW)
    services.approve_own(request, node)
    assert authenticate(old) == node  # until the new machine has its token
    assert authenticate(collect(secret, now=NOW).access_token) == node
    assert authenticate(old) is None


def test_a_client_that_asks_too_often_must_slow_down() -> None:
    request, secret = request_node(ASKER, now=NOW)
    error_of(secret)
    assert error_of(secret, now=later(seconds=0.5)) == "slow_down"
    request.refresh_from_db()
    assert request.interval_s == services.INTERVAL_S + services.INTERVAL_STEP_S


def test_a_client_that_keeps_to_its_interval_is_not_slowed_down() -> None:
    _, secret = request_node(ASKER, now=NOW)
    for turn in range(5):
        error = error_of(secret, now=later(seconds=turn * services.INTERVAL_S))
        assert error == "authorization_pending"


def test_a_network_cannot_ask_for_codes_without_end() -> None:
    for _ in range(services.REQUESTS_PER_TEN_MINUTES):
        request_node(ASKER, now=NOW)
    with pytest.raises(DeviceFlowError, match="ten minutes"):
        request_node(ASKER, now=NOW)
    request_node(JoinRequester(network="192.0.2.2"), now=NOW)
    request_node(ASKER, now=later(minutes=11))


def test_old_requests_are_deleted() -> None:
    request_node(ASKER, now=NOW)
    newer, _ = request_node(ASKER, now=later(days=2))
    services.prune_requests(now=later(days=2))
    assert list(JoinRequest.objects.all()) == [newer]


@pytest.mark.parametrize("change", [rotate_token, revoke_token])
def test_a_token_that_changed_after_the_approval_stays(
    change: Callable[[Node], object],
) -> None:
    owner = make_owner()
    node, _ = create_node(owner=owner)
    request, secret = request_node(ASKER, now=NOW)
    services.approve_own(request, node)
    change(node)
    assert error_of(secret) == "expired_token"


@pytest.mark.parametrize("end", [revoke_token, lambda node: delete_account(node.owner)])
def test_a_node_without_a_token_that_is_ended_again_gets_none(
    end: Callable[[Node], object],
) -> None:
    node, _ = create_node(owner=make_owner())
    revoke_token(node)
    node.refresh_from_db()
    request, secret = request_node(ASKER, now=NOW)
    services.approve_own(request, node)
    end(node)
    assert error_of(secret) == "expired_token"


def test_a_deleted_account_leaves_no_token_to_collect() -> None:
    request, secret = request_node(ASKER, now=NOW)
    owner = make_owner()
    services.approve_new(request, owner, name=None, now=NOW)
    delete_account(owner)
    assert error_of(secret) == "expired_token"


def test_an_account_with_all_the_nodes_that_it_may_own_gets_no_more(settings: Any) -> None:
    settings.NODES_PER_ACCOUNT = 1
    owner = make_owner()
    create_node(owner=owner)
    request, _ = request_node(ASKER, now=NOW)
    with pytest.raises(RequestError, match="may own 1"):
        services.approve_new(request, owner, name=None, now=NOW)
    _, token = create_node()
    claim, _ = request_owner(ASKER, token, now=NOW)
    with pytest.raises(RequestError, match="may own 1"):
        services.approve_claim(claim, owner, now=NOW)
    assert services.find_open(request.user_code, now=NOW) is not None


# ---- without an account


def test_an_anonymous_node_begins_without_a_person_where_the_site_allows_it(settings: Any) -> None:
    settings.ANONYMOUS_JOIN = True
    _, secret = request_node(ASKER, now=NOW, anonymous=True)
    node = authenticate(collect(secret, now=NOW).access_token)
    assert node is not None
    assert node.owner is None


def test_an_anonymous_node_is_made_once(settings: Any) -> None:
    settings.ANONYMOUS_JOIN = True
    _, secret = request_node(ASKER, now=NOW, anonymous=True)
    assert Node.objects.count() == 0
    assert collect(secret, now=NOW) == collect(secret, now=NOW)
    assert Node.objects.count() == 1


def test_no_anonymous_node_begins_where_the_site_forbids_it(settings: Any) -> None:
    settings.ANONYMOUS_JOIN = False
    with pytest.raises(DeviceFlowError) as refused:
        request_node(ASKER, now=NOW, anonymous=True)
    assert refused.value.error == "anonymous_forbidden"


def test_a_network_makes_so_many_anonymous_nodes_a_day(settings: Any) -> None:
    settings.ANONYMOUS_JOIN, settings.ANONYMOUS_NODES_PER_DAY = True, 2
    for _ in range(2):
        request_node(ASKER, now=NOW, anonymous=True)
    with pytest.raises(DeviceFlowError, match="which is the limit"):
        request_node(ASKER, now=later(hours=23), anonymous=True)
    request_node(ASKER, now=later(hours=25), anonymous=True)


# ---- a node gets an owner


def test_a_node_without_an_owner_is_claimed_and_keeps_its_token() -> None:
    node, token = create_node(name="heron")
    request, secret = request_owner(ASKER, token, now=NOW)
    owner = make_owner()
    assert services.approve_claim(request, owner, now=NOW)
    given = collect(secret, now=NOW)
    assert (given.node, given.access_token) == ("heron", "")
    node.refresh_from_db()
    assert node.owner == owner
    assert authenticate(token) == node


def test_a_node_that_has_an_owner_cannot_be_claimed() -> None:
    _, token = create_node(owner=make_owner())
    with pytest.raises(DeviceFlowError) as refused:
        request_owner(ASKER, token, now=NOW)
    assert refused.value.error == "already_owned"


def test_of_two_claims_the_first_one_counts() -> None:
    node, token = create_node()
    first, _ = request_owner(ASKER, token, now=NOW)
    second, secret = request_owner(ASKER, token, now=NOW)
    owner = make_owner()
    assert services.approve_claim(first, owner, now=NOW)
    assert not services.approve_claim(second, User.objects.create_user("other"), now=NOW)
    node.refresh_from_db()
    assert node.owner == owner
    assert error_of(secret) == "authorization_pending"


@pytest.mark.parametrize("change", [rotate_token, revoke_token])
def test_a_token_that_was_ended_claims_nothing_more(change: Callable[[Node], object]) -> None:
    node, token = create_node()
    claim, _ = request_owner(ASKER, token, now=NOW)
    change(node)
    assert not services.approve_claim(claim, make_owner(), now=NOW)
    node.refresh_from_db()
    assert node.owner is None


def test_a_wrong_token_claims_nothing() -> None:
    with pytest.raises(DeviceFlowError) as refused:
        request_owner(ASKER, "swarm_wrong", now=NOW)
    assert refused.value.status == 401
