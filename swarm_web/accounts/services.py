"""Changes of accounts and their nodes."""

from datetime import datetime, timedelta
from http import HTTPStatus

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import ProtectedError

from swarm_web.accounts.models import Profile
from swarm_web.core.errors import RequestError
from swarm_web.nodes.models import Node
from swarm_web.nodes.services import create_node, revoke_token

_HOUR = timedelta(hours=1)


def create_own_node(
    user: User, *, now: datetime, name: str | None = None, title: str = ""
) -> tuple[Node, str]:
    """Create a node of an account and return it with its token, which is shown only now.

    Raises RequestError as `check_node_limits` does, and the errors of `create_node` for an invalid
    or taken name.
    """
    with transaction.atomic():
        check_node_limits(user, now=now)
        return create_node(name=name, owner=user, title=title)


def check_node_limits(user: User, *, now: datetime) -> None:
    """Raise RequestError unless the account may have another node. Call it in a transaction.

    Locks the account until the transaction ends: otherwise concurrent requests could exceed the
    limits, and a node created while the account is deleted could keep its token.
    """
    if not _lock(user):
        raise RequestError(
            "account.deleted",
            "This account was deleted.",
            fix="Sign in with another one.",
            status=HTTPStatus.FORBIDDEN,
        )
    nodes = Node.objects.filter(owner=user)
    if nodes.count() >= settings.NODES_PER_ACCOUNT:
        raise RequestError(
            "nodes.limit",
            f"An account may own {settings.NODES_PER_ACCOUNT} nodes, and yours does.",
            fix="Give a new token to one that you no longer use, or ask the operator.",
            status=HTTPStatus.FORBIDDEN,
        )
    if nodes.filter(created_at__gt=now - _HOUR).count() >= settings.NEW_NODES_PER_HOUR:
        raise RequestError(
            "nodes.too_fast",
            f"An account may make {settings.NEW_NODES_PER_HOUR} nodes in an hour.",
            fix="Try again in an hour.",
            status=HTTPStatus.TOO_MANY_REQUESTS,
            retry_after_s=int(_HOUR.total_seconds()),
        )


def rename_node(node: Node, *, title: str) -> None:
    """Set a node's title, which must have been validated."""
    node.title = title
    node.save(update_fields=["title"])


def show_profile(user: User, *, is_public: bool) -> None:
    """Show or hide an account's public profile, which lists its nodes."""
    Profile.objects.update_or_create(user=user, defaults={"is_public": is_public})


def delete_account(user: User) -> None:
    """Delete an account. Its nodes keep their names and records, but no owner, title or token.

    Raises RequestError if the account made rulings as an operator, because the public record names
    the operator of each ruling.
    """
    try:
        with transaction.atomic():
            _lock(user)
            for node in Node.objects.select_for_update().filter(owner=user):
                revoke_token(node)
            Node.objects.filter(owner=user).update(title="")
            user.delete()
    except ProtectedError as problem:
        raise RequestError(
            "account.kept",
            "Your account made rulings as an operator, and the public record names it.",
            fix="Let another operator take your rights away and set the account inactive.",
            status=HTTPStatus.CONFLICT,
        ) from problem


def _lock(user: User) -> bool:
    """Lock the account in this transaction; return whether it exists."""
    return User.objects.select_for_update().filter(pk=user.pk).first() is not None
