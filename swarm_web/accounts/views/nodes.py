"""Pages about one's own nodes, their titles and tokens."""

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _

from swarm_web.accounts.forms import TitleForm
from swarm_web.accounts.selectors import read_own_nodes
from swarm_web.accounts.services import create_own_node, rename_node
from swarm_web.accounts.views.own import own_node, own_page, signed_in_user
from swarm_web.nodes.models import Node
from swarm_web.nodes.services import revoke_token, rotate_token


@own_page
def account(request: HttpRequest) -> HttpResponse:
    """List the user's nodes, and explain how to add one."""
    return _list(request, TitleForm())


@own_page
def create(request: HttpRequest) -> HttpResponse:
    """On POST, create a node and show its token, which is not shown again.

    Any other method redirects to the list of the user's nodes.
    """
    if request.method != "POST":
        return redirect("account")
    form = TitleForm(request.POST)
    if not form.is_valid():
        return _list(request, form)
    title = form.cleaned_data["title"]
    node, token = create_own_node(signed_in_user(request), title=title, now=timezone.now())
    return _show_token(request, node, token)


@own_page
def manage(request: HttpRequest, name: str) -> HttpResponse:
    """Show the actions for a node; on POST, rename it."""
    node = own_node(request, name)
    form = TitleForm(request.POST or None, initial={"title": node.title})
    if request.method == "POST" and form.is_valid():
        rename_node(node, title=form.cleaned_data["title"])
        messages.success(request, _("The title has been changed."))
        return redirect("account-node", name)
    return render(request, "account/node.html", {"node": node, "form": form})


@own_page
def rotate(request: HttpRequest, name: str) -> HttpResponse:
    """On POST, replace a node's token and show the new one, which is not shown again.

    Any other method redirects to the node's page.
    """
    if request.method != "POST":
        own_node(request, name)
        return redirect("account-node", name)
    # Locked, because a node whose owner is deleted concurrently would keep the token.
    with transaction.atomic():
        node = own_node(request, name, among=Node.objects.select_for_update())
        token = rotate_token(node)
    return _show_token(request, node, token)


@own_page
def revoke(request: HttpRequest, name: str) -> HttpResponse:
    """On POST, revoke a node's token. Every method redirects to the node's page."""
    node = own_node(request, name)
    if request.method == "POST":
        revoke_token(node)
        messages.success(
            request, _("The token has been revoked. You can create a new one at any time.")
        )
    return redirect("account-node", name)


def _list(request: HttpRequest, form: TitleForm) -> HttpResponse:
    nodes = read_own_nodes(signed_in_user(request), now=timezone.now())
    return render(request, "account/nodes.html", {"nodes": nodes, "form": form})


def _show_token(request: HttpRequest, node: Node, token: str) -> HttpResponse:
    return render(request, "account/token.html", {"node": node, "token": token})
