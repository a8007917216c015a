"""The device flow (RFC 8628): a client requests a token, a person approves, the client collects it.

The token is derived from the client's secret. So a client that lost the reply with the token can
request it again, although the database stores neither the token nor the secret.
"""

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import SystemRandom

from django.conf import settings
from django.contrib.auth.models import User
from django.db import IntegrityError, connection, transaction
from django.utils.crypto import salted_hmac

from swarm_protocol.joining import DeviceErrorCode, DeviceToken
from swarm_web.accounts.services import check_node_limits, create_own_node
from swarm_web.joining.codes import draw_user_code
from swarm_web.joining.models import JoinRequest
from swarm_web.nodes.models import Node
from swarm_web.nodes.services import authenticate, create_node, give_token, hash_token, make_token

VALID_FOR = timedelta(minutes=15)
# Minimum time between a client's requests for its token, and how much it grows after a request that
# came too early (RFC 8628, section 3.5).
INTERVAL_S = 2
INTERVAL_STEP_S = 5
# Tolerance for the interval, because clocks and networks are not exact.
SLACK_S = 0.5
# How long requests are kept after they expire, to count anonymous nodes of a network.
RETENTION = timedelta(days=1)
REQUESTS_PER_TEN_MINUTES = 60

_Decision = JoinRequest.Decision


class DeviceFlowError(Exception):
    """A refusal of a client's request for a code or token, or a reply that the client must wait.

    `status` is the HTTP status, `error` the error code and `description` the text of the reply
    (RFC 6749, section 5.2).
    """

    def __init__(self, error: DeviceErrorCode, description: str, *, status: int = 400) -> None:
        super().__init__(description)
        self.error = error
        self.description = description
        self.status = status


@dataclass(frozen=True, kw_only=True)
class JoinRequester:
    """A client that requests a token or an owner.

    `network` is the network of its address (`name_network`); the client states the other fields.
    """

    network: str
    client_version: str = ""
    model: str = ""


# ---- the client requests a token


@transaction.atomic
def request_node(
    requester: JoinRequester, *, now: datetime, anonymous: bool = False
) -> tuple[JoinRequest, str]:
    """Create a request for a token; return the request and its device code.

    The device code is secret: only the client gets it. A request for an anonymous node needs no
    decision by a person. Raises DeviceFlowError if the client's network has made too many requests.
    For an anonymous node, it is also raised if the site does not allow anonymous nodes, or if the
    network has reached the daily limit.
    """
    _lock_network(requester)
    if anonymous:
        _check_anonymous(requester, now=now)
    decision = _Decision.APPROVED if anonymous else _Decision.WAITING
    return _create(requester, now=now, anonymous=anonymous, decision=decision)


@transaction.atomic
def request_owner(
    requester: JoinRequester, token: str, *, now: datetime
) -> tuple[JoinRequest, str]:
    """Create a request for an owner of the node with this token.

    Returns the request and the device code. Raises DeviceFlowError if the token is not valid, the
    node already has an owner, or the client's network has made too many requests.
    """
    node = authenticate(token)
    if node is None:
        raise DeviceFlowError("access_denied", "This token is unknown or was revoked.", status=401)
    if node.owner_id is not None:
        raise DeviceFlowError("already_owned", f"The node {node.name} belongs to an account.")
    _lock_network(requester)
    return _create(requester, now=now, claimed=node)


def _lock_network(requester: JoinRequester) -> None:
    """Make other requests of the client's network wait until the transaction ends.

    Otherwise concurrent requests could exceed the network's limits.
    """
    with connection.cursor() as cursor:
        lock = "SELECT pg_advisory_xact_lock(hashtext('joining.network'), hashtext(%s))"
        cursor.execute(lock, [requester.network])


def _check_anonymous(requester: JoinRequester, *, now: datetime) -> None:
    if not settings.ANONYMOUS_JOIN:
        raise DeviceFlowError(
            "anonymous_forbidden", "On this site a node needs an account.", status=403
        )
    recent = JoinRequest.objects.filter(
        anonymous=True, network=requester.network, created_at__gt=now - RETENTION
    )
    if recent.count() >= settings.ANONYMOUS_NODES_PER_DAY:
        raise DeviceFlowError(
            "anonymous_forbidden",
            f"Your network has made {settings.ANONYMOUS_NODES_PER_DAY} anonymous nodes within a "
            "day, which is the limit. Use an account, or try again tomorrow.",
            status=403,
        )


def _create(
    requester: JoinRequester,
    *,
    now: datetime,
    anonymous: bool = False,
    claimed: Node | None = None,
    decision: str = _Decision.WAITING,
) -> tuple[JoinRequest, str]:
    recent = JoinRequest.objects.filter(
        network=requester.network, created_at__gt=now - timedelta(minutes=10)
    )
    if recent.count() >= REQUESTS_PER_TEN_MINUTES:
        raise DeviceFlowError(
            "slow_down", "Your network has asked for too many codes: wait ten minutes.", status=429
        )
    secret = secrets.token_urlsafe(32)
    while True:
        try:
            with transaction.atomic():
                request = JoinRequest.objects.create(
                    device_hash=hash_token(secret),
                    user_code=draw_user_code(SystemRandom()),
                    network=requester.network,
                    client_version=requester.client_version,
                    model=requester.model,
                    anonymous=anonymous,
                    claimed=claimed,
                    replaces=claimed.token_hash if claimed else "",
                    decision=decision,
                    interval_s=INTERVAL_S,
                    created_at=now,
                    expires_at=now + VALID_FOR,
                )
        except IntegrityError:
            continue  # Another request has this code, with a chance of 1 in 10^10.
        return request, secret


# ---- a person decides


def find_open(user_code: str, *, now: datetime) -> JoinRequest | None:
    """Return the request with this code if it can still be decided, else None."""
    request = JoinRequest.objects.select_related("claimed").filter(user_code=user_code).first()
    return request if request is not None and request.is_open(now=now) else None


@transaction.atomic
def approve_new(
    request: JoinRequest, owner: User, *, name: str | None, now: datetime
) -> Node | None:
    """Create a node of `owner` for the client and return it.

    Returns None if the request was already decided. If `name` is None, a name is generated. Raises
    RequestError if `owner` may not have another node, ValidationError if the name is not a slug or
    is too long, and IntegrityError if the name is taken.
    """
    if not _decide(request, _Decision.APPROVED):
        return None
    # This token is never shown: the client gets the one derived from its secret.
    node, _ = create_own_node(owner, name=name, now=now)
    _assign_node(request, node)
    return node


@transaction.atomic
def approve_own(request: JoinRequest, node: Node) -> bool:
    """Let the client continue as `node` and return True; False if the request was already decided.

    The caller checks that the person who decides owns the node. The node's token becomes invalid
    when the client collects the new token.
    """
    decided = _decide(request, _Decision.APPROVED)
    if decided:
        _assign_node(request, node)
    return decided


@transaction.atomic
def approve_claim(request: JoinRequest, owner: User, *, now: datetime) -> bool:
    """Make `owner` the owner of the requesting node, and return True.

    Changes nothing and returns False if the request was already decided, or if the node received an
    owner or another token after the request was made. Raises RequestError if `owner` may not have
    another node.
    """
    assert request.claimed is not None
    check_node_limits(owner, now=now)
    unclaimed = Node.objects.filter(pk=request.claimed.pk, owner=None, token_hash=request.replaces)
    claimed = unclaimed.update(owner=owner)
    if claimed and _decide(request, _Decision.APPROVED):
        return True
    transaction.set_rollback(True)
    return False


def _assign_node(request: JoinRequest, node: Node) -> None:
    """Store in the request the node for which the client gets a token.

    If the node's current token changes before the client collects the new one, the request is void.
    """
    JoinRequest.objects.filter(pk=request.pk).update(node=node, replaces=node.token_hash)


def deny(request: JoinRequest) -> bool:
    """Deny the request and return True; False if it was already decided."""
    return _decide(request, _Decision.DENIED)


def _decide(request: JoinRequest, decision: str) -> bool:
    waiting = JoinRequest.objects.filter(pk=request.pk, decision=_Decision.WAITING)
    return bool(waiting.update(decision=decision))


# ---- the client collects


def collect(device_code: str, *, now: datetime) -> DeviceToken:
    """Return the token for the client's node; the node's earlier token becomes invalid.

    If the request is for an anonymous node, the first call creates the node. If the request is for
    an owner (`request_owner`), the client keeps its token and the returned token is empty. May be
    called again until the request expires.

    Raises DeviceFlowError if the request is unknown, has expired or was denied, or if the node
    received another token after the approval. It is also raised while the request waits for a
    decision: with `slow_down` if the client asks too often, otherwise with `authorization_pending`.
    """
    with transaction.atomic():
        found = JoinRequest.objects.select_for_update().filter(device_hash=hash_token(device_code))
        request = found.first()
        if request is None or now >= request.expires_at:
            raise _expired()
        if request.decision == _Decision.APPROVED:
            return _issue_token(request, device_code)
        if request.decision == _Decision.DENIED:
            raise DeviceFlowError("access_denied", "The request was declined on the site.")
        too_early = _record_call(request, now=now)
    # After the transaction, which has to store the time of this call.
    if too_early:
        raise DeviceFlowError("slow_down", f"Ask at most every {request.interval_s} s.")
    raise DeviceFlowError("authorization_pending", "The code has not been approved yet.")


def _record_call(request: JoinRequest, *, now: datetime) -> bool:
    """Store the time of the client's call, and return whether it came too early.

    If it did, the client must wait longer between calls from now on, up to VALID_FOR.
    """
    earliest = timedelta(seconds=request.interval_s - SLACK_S)
    too_early = request.asked_at is not None and now - request.asked_at < earliest
    if too_early:
        longest = int(VALID_FOR.total_seconds())
        request.interval_s = min(request.interval_s + INTERVAL_STEP_S, longest)
    request.asked_at = now
    request.save(update_fields=["asked_at", "interval_s"])
    return too_early


def _issue_token(request: JoinRequest, device_code: str) -> DeviceToken:
    if request.claimed is not None:
        return DeviceToken(access_token="", node=request.claimed.name)
    token = _derive_token(device_code)
    if request.node is None:  # an anonymous node is created when its client collects the token
        request.node, _ = create_node()
        request.replaces = request.node.token_hash
        request.save(update_fields=["node", "replaces"])
    # Locked, because a concurrent revocation would be undone otherwise.
    node = Node.objects.select_for_update().get(pk=request.node.pk)
    if node.token_hash == request.replaces:
        give_token(node, token)
    elif node.token_hash != hash_token(token):
        raise _expired()
    return DeviceToken(access_token=token, node=node.name)


def _derive_token(device_code: str) -> str:
    derived = salted_hmac("swarm_web.joining", device_code, algorithm="sha256")
    return make_token(derived.digest())


def _expired() -> DeviceFlowError:
    return DeviceFlowError("expired_token", "The code has expired: request a new one.")


# ---- cleaning up


def prune_requests(*, now: datetime) -> None:
    """Delete requests that expired more than RETENTION ago, with the networks that they store."""
    JoinRequest.objects.filter(expires_at__lt=now - RETENTION).delete()
