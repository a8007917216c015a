"""Test concurrent decisions: a revoked token stays revoked, and limits are not exceeded."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from swarm_web.accounts.services import delete_account
from swarm_web.core.errors import RequestError
from swarm_web.joining import services
from swarm_web.joining.services import (
    DeviceFlowError,
    JoinRequester,
    collect,
    request_node,
    request_owner,
)
from swarm_web.nodes.models import Node
from swarm_web.nodes.services import create_node, revoke_token
from tests.races import committed_while_waited_for

pytestmark = pytest.mark.django_db(transaction=True)

NOW = timezone.now()
REQUESTER = JoinRequester(network="192.0.2.1")


def make_owner() -> User:
    return User.objects.create_user("olive")


@pytest.mark.parametrize("end", [revoke_token, lambda node: delete_account(node.owner)])
def test_token_revoked_while_a_client_collects_it_stays_revoked(
    end: Callable[[Node], object],
) -> None:
    request, secret = request_node(REQUESTER, now=NOW)
    node = services.approve_new(request, make_owner(), name=None, now=NOW)
    assert node is not None
    with committed_while_waited_for(collect, secret, now=NOW) as collected:
        end(node)
    with pytest.raises(DeviceFlowError, match="expired"):
        collected[0].result()
    assert Node.objects.get().is_revoked


def test_node_approved_while_its_account_is_deleted_gets_no_token() -> None:
    request, secret = request_node(REQUESTER, now=NOW)
    owner = make_owner()
    with committed_while_waited_for(delete_account, owner) as deleted:
        services.approve_new(request, owner, name=None, now=NOW)
    deleted[0].result()
    with pytest.raises(DeviceFlowError, match="expired"):
        collect(secret, now=NOW)


def test_account_deleted_during_approval_approves_nothing() -> None:
    request, _ = request_node(REQUESTER, now=NOW)
    owner = User.objects.get(pk=make_owner().pk)
    with committed_while_waited_for(
        services.approve_new, request, owner, name=None, now=NOW
    ) as approved:
        delete_account(User.objects.get())
    with pytest.raises(RequestError, match="deleted"):
        approved[0].result()
    assert services.find_open(request.user_code, now=NOW) is not None


def test_node_claimed_while_its_account_is_deleted_has_no_token() -> None:
    node, token = create_node()
    claim, _ = request_owner(REQUESTER, token, now=NOW)
    owner = make_owner()
    with committed_while_waited_for(delete_account, owner) as deleted:
        services.approve_claim(claim, owner, now=NOW)
    deleted[0].result()
    node.refresh_from_db()
    assert node.is_revoked


def test_concurrent_claims_do_not_exceed_the_account_limit(settings: Any) -> None:
    settings.NODES_PER_ACCOUNT = 1
    first, second = (request_owner(REQUESTER, create_node()[1], now=NOW)[0] for _ in range(2))
    owner = make_owner()
    with committed_while_waited_for(services.approve_claim, second, owner, now=NOW) as approved:
        services.approve_claim(first, owner, now=NOW)
    with pytest.raises(RequestError, match="may own 1"):
        approved[0].result()


def test_concurrent_requests_do_not_exceed_the_network_limit(settings: Any) -> None:
    settings.ANONYMOUS_JOIN, settings.ANONYMOUS_NODES_PER_DAY = True, 1
    with committed_while_waited_for(request_node, REQUESTER, now=NOW, anonymous=True) as asked:
        request_node(REQUESTER, now=NOW, anonymous=True)
    with pytest.raises(DeviceFlowError, match="which is the limit"):
        asked[0].result()
