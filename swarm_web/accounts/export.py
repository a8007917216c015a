"""The export of an account's data, as values for Django's JSON encoder (docs/accounts.md)."""

from collections.abc import Iterable
from typing import Any

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from django.contrib.auth.models import User

from judge.models import Score
from swarm_web.accounts.models import Profile
from swarm_web.nodes.models import Node
from swarm_web.notifications.models import Channel
from swarm_web.relay.models import Contribution

# Fields copied unchanged. The hash of the token is left out, because it is of no use.
_NODE = (
    *("name", "title", "arm", "model", "parameters", "tokenizer", "client_version", "hardware"),
    *("blocked", "quarantined", "created_at", "last_seen", "left_at"),
)
_SCORE = (
    *("model", "arm", "status", "reason", "correct", "n", "cells"),
    *("score", "interval_low", "interval_high"),
)
_CONTRIBUTION = (
    *("published", "rejected", "delivered", "step", "training_reward", "informative_share"),
    *("local_used", "external_used", "external_dropped", "used_by_others"),
    *("declared_checked", "declared_false", "updated_at"),
)
# Without the secret: with it anyone could send the receiver messages in the site's name.
_CHANNEL = (
    *("kind", "target", "events", "enabled", "off_because", "created_at"),
    *("failures", "failed_at", "failure"),
)


def export_account(user: User) -> dict[str, Any]:
    """Return the data of an account, as values for Django's JSON encoder.

    The data describes the account, its notification channels, its nodes, and the nodes' scores and
    contributions. It contains no secrets and no hashes of secrets.
    """
    nodes = Node.objects.filter(owner=user).prefetch_related("keys")
    return {
        "account": _describe_account(user),
        "notifications": [_copy(row, _CHANNEL) for row in Channel.objects.filter(owner=user)],
        "nodes": [_describe_node(node) for node in nodes],
        "scores": [_describe_score(score) for score in _scores(nodes)],
        "contributions": [
            {"node": part.node.name, "season": part.season.name, **_copy(part, _CONTRIBUTION)}
            for part in Contribution.objects.filter(node__in=nodes).select_related("node", "season")
        ],
    }


def _describe_account(user: User) -> dict[str, Any]:
    emails = EmailAddress.objects.filter(user=user).values("email", "verified", "primary")
    linked = SocialAccount.objects.filter(user=user).values("provider", "uid", "date_joined")
    factors = Authenticator.objects.filter(user=user).values("type", "created_at", "last_used_at")
    return {
        **_copy(user, ("username", "email", "date_joined", "last_login", "is_staff")),
        "emails": list(emails),
        "linked_accounts": list(linked),
        "second_factors": list(factors),
        "public_profile": Profile.objects.filter(user=user, is_public=True).exists(),
    }


def _describe_node(node: Node) -> dict[str, Any]:
    keys = [{"public": key.public, "first_seen": key.first_seen} for key in node.keys.all()]
    return {**_copy(node, _NODE), "revoked": node.is_revoked, "signing_keys": keys}


def _scores(nodes: Iterable[Node]) -> Iterable[Score]:
    scores = Score.objects.filter(node__in=nodes).select_related("node", "round__season")
    # Columns that are large, or that only the round's page may show.
    deferred = ("answered", "solved", "round__rules", "round__secret")
    return scores.defer(*deferred).order_by("node__name", "round__number")


def _describe_score(score: Score) -> dict[str, Any]:
    judge_round = score.round
    return {
        "node": score.node.name,
        "season": judge_round.season.name,
        "round": judge_round.number,
        "closed_at": judge_round.closed_at,
        **_copy(score, _SCORE),
    }


def _copy(row: object, names: Iterable[str]) -> dict[str, Any]:
    return {name: getattr(row, name) for name in names}
