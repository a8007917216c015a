"""Pages for an owner's notification channels."""

from typing import Any, cast

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods, require_POST

from swarm_web.core.errors import RequestError, answer_refusals
from swarm_web.notifications.forms import ChannelForm, EventsForm
from swarm_web.notifications.models import Channel
from swarm_web.notifications.selectors import can_mail, mail_address
from swarm_web.notifications.services import channels as services
from swarm_web.notifications.unsubscribing import read_token

_SHOWN = 20


@login_required
@never_cache
@require_http_methods(["GET", "POST"])
def notifications(request: HttpRequest) -> HttpResponse:
    """List the owner's channels, and add a channel; the secret of a new webhook is shown once."""
    owner = _owner(request)
    form = ChannelForm(request.POST or None, with_mail=can_mail())
    if request.method == "POST" and form.is_valid():
        channel = _add(owner, form)
        if channel is not None and channel.secret:
            return _show(request, channel, secret=channel.secret)
        if channel is not None:
            messages.success(request, _("Channel added. Send a test to check that it works."))
            return redirect("notification-channel", channel.pk)
    context = {
        "channels": Channel.objects.filter(owner=owner),
        "form": form,
        "most": services.MAX_CHANNELS,
        "address": mail_address(owner),
        "with_mail": can_mail(),
    }
    return render(request, "account/notifications/list.html", context)


def _add(owner: User, form: ChannelForm) -> Channel | None:
    """Add the channel of a valid form and return it.

    If it is a duplicate or the account has too many channels, add an error to the form and return
    None.
    """
    try:
        return services.add_channel(owner, now=timezone.now(), **form.cleaned_data)
    except services.TooManyChannelsError:
        most = services.MAX_CHANNELS
        form.add_error(
            None,
            _("An account has at most %(most)s channels. Delete one first.") % {"most": most},
        )
    except services.DuplicateChannelError:
        form.add_error("target", _("You already have this channel."))
    return None


@login_required
@never_cache
@require_http_methods(["GET", "POST"])
def channel(request: HttpRequest, pk: int) -> HttpResponse:
    """Show a channel with its latest deliveries, and change its events."""
    shown = _find(request, pk)
    form = EventsForm(request.POST or None, initial={"events": shown.events})
    if request.method == "POST" and form.is_valid():
        Channel.objects.filter(pk=shown.pk).update(events=form.cleaned_data["events"])
        messages.success(request, _("Saved."))
        return redirect("notification-channel", pk)
    return _show(request, shown, form=form)


def _show(request: HttpRequest, shown: Channel, **context: Any) -> HttpResponse:
    context.setdefault("form", EventsForm(initial={"events": shown.events}))
    context |= {"channel": shown, "deliveries": shown.deliveries.all()[:_SHOWN]}
    return render(request, "account/notifications/channel.html", context)


@login_required
@require_POST
@answer_refusals
def test(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Queue a test message; refuse it if the channel is off or its account sent too many tests."""
    tested = _find(request, pk)
    if not tested.enabled:
        raise RequestError(
            "notifications.off", "This channel is switched off.", fix="Switch it on first."
        )
    services.send_test(tested, now=timezone.now())
    messages.success(request, _("The test is being sent. Reload this page to see the result."))
    return redirect("notification-channel", pk)


@login_required
@never_cache
@require_POST
def secret(request: HttpRequest, pk: int) -> HttpResponse:
    """Replace a webhook's secret and show the new one, once."""
    renewed = get_object_or_404(Channel, pk=pk, owner=_owner(request), kind=Channel.Kind.WEBHOOK)
    return _show(request, renewed, secret=services.replace_secret(renewed))


@login_required
@require_POST
@answer_refusals
def switch(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Switch a channel off if the form contains `off`, otherwise on."""
    switched = _find(request, pk)
    if "off" in request.POST:
        services.switch_off(switched, because=Channel.Off.OWNER, now=timezone.now())
        return redirect("notification-channel", pk)
    try:
        services.switch_on(switched)
    except services.SwitchedOffError:
        raise RequestError(
            "notifications.operator",
            "The operator of this site switched this channel off.",
            fix="Ask the operator.",
            status=403,
        ) from None
    return redirect("notification-channel", pk)


@login_required
@require_POST
def delete(request: HttpRequest, pk: int) -> HttpResponse:
    """Delete a channel with its deliveries."""
    _find(request, pk).delete()
    messages.success(request, _("Channel deleted."))
    return redirect("notifications")


# A mail program posts without cookies (RFC 8058); the signed link is the permission.
@csrf_exempt
@never_cache
@require_http_methods(["GET", "POST"])
def unsubscribe(request: HttpRequest, token: str) -> HttpResponse:
    """Switch off the channel of a signed link, if the request is a POST.

    Opening the link (GET) changes nothing.
    """
    linked = read_token(token)
    is_done = linked is None or not linked.enabled
    if request.method == "POST" and linked is not None and not is_done:
        services.switch_off(linked, because=Channel.Off.UNSUBSCRIBED, now=timezone.now())
        is_done = True
    return render(request, "account/notifications/unsubscribe.html", {"is_done": is_done})


def _owner(request: HttpRequest) -> User:
    return cast("User", request.user)


def _find(request: HttpRequest, pk: int) -> Channel:
    return get_object_or_404(Channel, pk=pk, owner=_owner(request))
