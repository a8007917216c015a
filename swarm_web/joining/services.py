"""A client asks for a token, a person decides, the client collects it (RFC 8628).

The token is derived from the client's secret, so that a reply which is lost can be asked for again,
though the database keeps neither of them.
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
from swarm_web.accounts.services import check_room, create_own_node
from swarm_web.joining.codes import draw_user_code
from swarm_web.joining.models import JoinRequest
from swarm_web.nodes.models import Node
from swarm_web.nodes.services import authenticate, create_node, give_token, hash_token, make_token

VALID_FOR = timedelta(minutes=15)
# How often a client may ask for its token, and by how much longer it waits once it asked too often
# (RFC 8628, section 3.5).
INTERVAL_S = 2
SLOWER_BY_S = 5
# Clocks and networks are not exact: so much earlier than its interval a client may ask.
SLACK_S = 0.5
# How long requests are kept after their end: anonymous nodes of a network are counted by them.
KEPT_FOR = timedelta(days=1)
REQUESTS_PER_TEN_MINUTES = 60

_Decision = JoinRequest.Decision


class DeviceFlowError(Exception):
    """There is no token, or not yet: `error` is what RFC 8628 calls it."""

    def __init__(self, error: DeviceErrorCode, description: str, *, status: int = 400) -> None:
        super().__init__(description)
        self.error = error
        self.description = description
        self.status = status


@dataclass(frozen=True, kw_only=True)
class Asker:
    """Who asks for a token: what the client declares, and the address that it comes from."""

    network: str
    client_version: str = ""
    model: str = ""


# ---- the client asks


@transaction.atomic
def ask_for_node(
    asker: Asker, *, now: datetime, anonymous: bool = False
) -> tuple[JoinRequest, str]:
    """Return a new request and the client's secret. Raises DeviceFlowError.

    One for an anonymous node needs no person. It fails where the site does not allow such nodes,
    and where the client's network has made its number of them for this day.
    """
    _hold_network(asker)
    if anonymous:
        _check_anonymous(asker, now=now)
    decision = _Decision.APPROVED if anonymous else _Decision.WAITING
    return _create(asker, now=now, anonymous=anonymous, decision=decision)


@transaction.atomic
def ask_for_owner(asker: Asker, token: str, *, now: datetime) -> tuple[JoinRequest, str]:
    """Return a request to give an owner to the node with this token. Raises DeviceFlowError."""
    node = authenticate(token)
    if node is None:
        raise DeviceFlowError("access_denied", "This token is unknown or was revoked.", status=401)
    if node.owner_id is not None:
        raise DeviceFlowError("already_owned", f"The node {node.name} belongs to an account.")
    _hold_network(asker)
    return _create(asker, now=now, claimed=node)


def _hold_network(asker: Asker) -> None:
    """Keep others of this network waiting, or many at once would pass its limits."""
    with connection.cursor() as cursor:
        lock = "SELECT pg_advisory_xact_lock(hashtext('joining.network'), hashtext(%s))"
        cursor.execute(lock, [asker.network])


def _check_anonymous(asker: Asker, *, now: datetime) -> None:
    if not settings.ANONYMOUS_JOIN:
        raise DeviceFlowError(
            "anonymous_forbidden", "On this site a node needs an account.", status=403
        )
    made = JoinRequest.objects.filter(
        anonymous=True, network=asker.network, created_at__gt=now - KEPT_FOR
    )
    if made.count() >= settings.ANONYMOUS_NODES_PER_DAY:
        raise DeviceFlowError(
            "anonymous_forbidden",
            f"Your network has made {settings.ANONYMOUS_NODES_PER_DAY} anonymous nodes within a "
            "day, which is the limit. Use an account, or try again tomorrow.",
            status=403,
        )


def _create(
    asker: Asker,
    *,
    now: datetime,
    anonymous: bool = False,
    claimed: Node | None = None,
    decision: str = _Decision.WAITING,
) -> tuple[JoinRequest, str]:
    lately = JoinRequest.objects.filter(
        network=asker.network, created_at__gt=now - timedelta(minutes=10)
    )
    if lately.count() >= REQUESTS_PER_TEN_MINUTES:
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
                    network=asker.network,
                    client_version=asker.client_version,
                    model=asker.model,
                    anonymous=anonymous,
                    claimed=claimed,
                    replaces=claimed.token_hash if claimed else "",
                    decision=decision,
                    interval_s=INTERVAL_S,
                    created_at=now,
                    expires_at=now + VALID_FOR,
                )
        except IntegrityError:
            continue  # One in 10^10: another request has this code.
        return request, secret


# ---- a person decides


def find_open(user_code: str, *, now: datetime) -> JoinRequest | None:
    """Return the request with this code, if it is still to be decided."""
    request = JoinRequest.objects.select_related("claimed").filter(user_code=user_code).first()
    return request if request is not None and request.is_open(now=now) else None


@transaction.atomic
def approve_new(
    request: JoinRequest, owner: User, *, name: str | None, now: datetime
) -> Node | None:
    """Give the client a new node of `owner`, which is returned; None if somebody decided before.

    Raises RequestError when `owner` may have no more nodes, ValidationError when the name is no
    slug, and IntegrityError when it is taken.
    """
    if not _decide(request, _Decision.APPROVED):
        return None
    # Nobody knows this token: the client gets the one that its own secret stands for.
    node, _ = create_own_node(owner, name=name, now=now)
    _promise(request, node)
    return node


@transaction.atomic
def approve_own(request: JoinRequest, node: Node) -> bool:
    """Let the client go on as a node of the person who decides; tell whether nobody had decided.

    The node's token ends when the client collects the new one.
    """
    decided = _decide(request, _Decision.APPROVED)
    if decided:
        _promise(request, node)
    return decided


@transaction.atomic
def approve_claim(request: JoinRequest, owner: User, *, now: datetime) -> bool:
    """Make `owner` the owner of the node that asks for one; tell whether nobody was faster.

    The node must still have the token that its client asked with. Raises RequestError when `owner`
    may have no more nodes.
    """
    assert request.claimed is not None
    check_room(owner, now=now)
    unclaimed = Node.objects.filter(pk=request.claimed.pk, owner=None, token_hash=request.replaces)
    claimed = unclaimed.update(owner=owner)
    if claimed and _decide(request, _Decision.APPROVED):
        return True
    transaction.set_rollback(True)
    return False


def _promise(request: JoinRequest, node: Node) -> None:
    """Note what the client is to collect, unless the node's token changes before it does."""
    JoinRequest.objects.filter(pk=request.pk).update(node=node, replaces=node.token_hash)


def deny(request: JoinRequest) -> bool:
    """Refuse the client a token; tell whether nobody had decided."""
    return _decide(request, _Decision.DENIED)


def _decide(request: JoinRequest, decision: str) -> bool:
    waiting = JoinRequest.objects.filter(pk=request.pk, decision=_Decision.WAITING)
    return bool(waiting.update(decision=decision))


# ---- the client collects


def collect(device_code: str, *, now: datetime) -> DeviceToken:
    """Return the token of the node that the client was given. Raises DeviceFlowError.

    May be called again until the request expires, unless the node was given another token since.
    """
    with transaction.atomic():
        found = JoinRequest.objects.select_for_update().filter(device_hash=hash_token(device_code))
        request = found.first()
        if request is None or now >= request.expires_at:
            raise _expired()
        if request.decision == _Decision.APPROVED:
            return _hand_over(request, device_code)
        if request.decision == _Decision.DENIED:
            raise DeviceFlowError("access_denied", "The request was declined on the site.")
        hasty = _note_asking(request, now=now)
    # Outside of the transaction, which keeps when the client asked.
    if hasty:
        raise DeviceFlowError("slow_down", f"Ask every {request.interval_s} s at most.")
    raise DeviceFlowError("authorization_pending", "Nobody has approved the code yet.")


def _note_asking(request: JoinRequest, *, now: datetime) -> bool:
    """Note that the client asked, and tell whether it did so too soon."""
    earliest = timedelta(seconds=request.interval_s - SLACK_S)
    hasty = request.asked_at is not None and now - request.asked_at < earliest
    if hasty:
        request.interval_s += SLOWER_BY_S
    request.asked_at = now
    request.save(update_fields=["asked_at", "interval_s"])
    return hasty


def _hand_over(request: JoinRequest, device_code: str) -> DeviceToken:
    if request.claimed is not None:
        return DeviceToken(access_token="", node=request.claimed.name)
    token = _derive_token(device_code)
    if request.node is None:  # an anonymous one begins with its client
        request.node, _ = create_node()
        request.replaces = request.node.token_hash
        request.save(update_fields=["node", "replaces"])
    # Held, or a token that is revoked at this moment would come back.
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
    return DeviceFlowError("expired_token", "The code has expired: ask for a new one.")


# ---- in the end


def prune_requests(*, now: datetime) -> None:
    """Forget requests that ended long ago, and the addresses in them."""
    JoinRequest.objects.filter(expires_at__lt=now - KEPT_FOR).delete()
