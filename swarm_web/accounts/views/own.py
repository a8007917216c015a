"""Helpers for views of account pages."""

from collections.abc import Callable
from typing import Concatenate, ParamSpec

from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404

from swarm_web.core.errors import answer_refusals
from swarm_web.nodes.models import Node

Rest = ParamSpec("Rest")
View = Callable[Concatenate[HttpRequest, Rest], HttpResponseBase]


def own_page(view: View[Rest]) -> View[Rest]:
    """Restrict a page to signed-in users, and show a RequestError as an error page."""
    guarded: View[Rest] = login_required(answer_refusals(view))
    return guarded


def signed_in_user(request: HttpRequest) -> User:
    """Return the signed-in user; only for views that `own_page` decorates."""
    assert isinstance(request.user, User)
    return request.user


def own_node(request: HttpRequest, name: str, *, among: QuerySet[Node] | None = None) -> Node:
    """Return the signed-in user's node of this name, from `among` or else from all nodes.

    Raises Http404 when the user has no such node.
    """
    nodes = Node.objects.all() if among is None else among
    return get_object_or_404(nodes, name=name, owner=signed_in_user(request))
