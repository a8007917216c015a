"""The page where a person enters a client's code and approves its request for a token."""

from datetime import datetime
from http import HTTPStatus
from random import SystemRandom

from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.db import IntegrityError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from swarm_web.core.attempts import count_attempt, uncount_attempts
from swarm_web.core.errors import answer_refusals
from swarm_web.edge.addresses import network_of_request
from swarm_web.joining import services
from swarm_web.joining.codes import read_user_code
from swarm_web.joining.forms import NodeChoiceForm
from swarm_web.joining.models import JoinRequest
from swarm_web.nodes.models import Node
from swarm_web.nodes.names import draw_name

# Number of wrong codes that an account may try in PERIOD_S seconds; there are 20^8 codes.
MAX_WRONG_CODES = 20
PERIOD_S = 600


@login_required
@never_cache
@answer_refusals
@require_http_methods(["GET", "HEAD", "POST"])
def device(request: HttpRequest) -> HttpResponse:
    """Ask for a client's code, show the request with this code, and carry out the decision."""
    assert isinstance(request.user, User)
    typed = (request.POST if request.method == "POST" else request.GET).get("code", "")
    if not typed:
        return render(request, "joining/code.html")
    now = timezone.now()
    join_request = _find_request(request.user, typed, now=now)
    if join_request is None:
        return render(request, "joining/code.html", {"typed": typed, "unknown": True}, status=404)
    if request.method != "POST":
        drawn = {"name": draw_name(SystemRandom())}
        return _show(request, join_request, NodeChoiceForm(owner=request.user, initial=drawn))
    if request.POST.get("decision") == "deny":
        services.deny(join_request)
        return render(request, "joining/denied.html")
    if join_request.claimed is not None:
        approved = services.approve_claim(join_request, request.user, now=now)
        return _follow_up(request, join_request.claimed if approved else None)
    return _approve(request, request.user, join_request, now=now)


def _find_request(user: User, typed: str, *, now: datetime) -> JoinRequest | None:
    """Return the open request with the code that an account typed; None if the code is wrong.

    Raises RequestError for every code, also a right one, once the account has tried MAX_WRONG_CODES
    wrong codes in PERIOD_S seconds.
    """
    key = f"joining:wrong:{user.pk}"
    # Before the lookup: beyond the limit, no answer may reveal whether a code is right.
    count_attempt(
        key,
        limit=MAX_WRONG_CODES,
        period_s=PERIOD_S,
        code="device.limited",
        message="You have tried too many codes that do not exist.",
    )
    found = services.find_open(read_user_code(typed), now=now)
    if found is not None:
        uncount_attempts(key, period_s=PERIOD_S)
    return found


def _approve(
    request: HttpRequest, owner: User, join_request: JoinRequest, *, now: datetime
) -> HttpResponse:
    form = NodeChoiceForm(request.POST, owner=owner)
    if not form.is_valid():
        return _show(request, join_request, form)
    own: Node | None = form.cleaned_data.get("node")
    if own is not None:
        return _follow_up(request, own if services.approve_own(join_request, own) else None)
    try:
        node = services.approve_new(
            join_request, owner, name=form.cleaned_data["name"] or None, now=now
        )
    except IntegrityError:
        form.add_error("name", _("This name is taken. Choose another name."))
        return _show(request, join_request, form)
    return _follow_up(request, node)


def _show(request: HttpRequest, join_request: JoinRequest, form: NodeChoiceForm) -> HttpResponse:
    context = {
        "asked": join_request,
        "form": form,
        "same_network": join_request.network == network_of_request(request),
    }
    return render(request, "joining/decide.html", context)


def _follow_up(request: HttpRequest, node: Node | None) -> HttpResponse:
    """Redirect to the page of an approved node; ask for another code if `node` is None.

    None means that the request was decided meanwhile, or could not be approved.
    """
    if node is None:
        return render(request, "joining/code.html", {"unknown": True}, status=HTTPStatus.CONFLICT)
    return redirect("device-approved", node.name)


@login_required
@never_cache
@require_safe
def approved(request: HttpRequest, name: str) -> HttpResponse:
    """Show whether the node of an approved client is connected."""
    node = get_object_or_404(Node, name=name, owner=request.user)
    connected = node.is_connected(now=timezone.now())
    return render(request, "joining/approved.html", {"node": node, "connected": connected})
