"""Views that show or hide an account's public profile, export its data, or delete it."""

from datetime import datetime, timedelta
from http import HTTPStatus

from allauth.account.adapter import get_adapter
from allauth.account.decorators import reauthentication_required
from django.contrib import messages
from django.contrib.auth import logout
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _

from swarm_web.accounts.export import export_account
from swarm_web.accounts.forms import ProfileForm
from swarm_web.accounts.models import Profile
from swarm_web.accounts.services import delete_account, show_profile
from swarm_web.accounts.views.own import own_page, signed_in_user
from swarm_web.core.errors import RequestError
from swarm_web.nodes.models import Node

_RECENT = timedelta(minutes=5)


@own_page
def data(request: HttpRequest) -> HttpResponse:
    """Show whether the account has a public profile; on POST, switch the profile on or off."""
    user = signed_in_user(request)
    chosen = ProfileForm(request.POST)
    if request.method == "POST" and chosen.is_valid():
        show_profile(user, is_public=chosen.cleaned_data["is_public"])
        messages.success(request, _("Saved."))
        return redirect("account-data")
    is_public = Profile.objects.filter(user=user, is_public=True).exists()
    form = ProfileForm(initial={"is_public": is_public})
    return render(request, "account/data.html", {"form": form, "is_public": is_public})


@own_page
def export(request: HttpRequest) -> HttpResponse:
    """Return the data of the signed-in user's account (`export_account`) as a JSON download."""
    answer = JsonResponse(export_account(signed_in_user(request)), json_dumps_params={"indent": 1})
    answer["Content-Disposition"] = 'attachment; filename="account.json"'
    return answer


@own_page
@reauthentication_required(allow_get=True)
def delete(request: HttpRequest) -> HttpResponse:
    """Delete the account on POST. On GET, explain what remains after the deletion.

    A POST requires that the user has signed in or reauthenticated recently.
    """
    user = signed_in_user(request)
    if request.method == "POST":
        _check_sign_in(user, now=timezone.now())
        delete_account(user)
        logout(request)
        messages.success(request, _("Your account has been deleted."))
        return redirect("account_login")
    nodes = Node.objects.filter(owner=user).count()
    return render(request, "account/delete.html", {"nodes": nodes})


def _check_sign_in(user: User, *, now: datetime) -> None:
    """Raise RequestError if allauth cannot reauthenticate the user and the sign-in is not recent.

    allauth cannot reauthenticate an account that has neither a password nor a second factor.
    """
    if get_adapter().get_reauthentication_methods(user):
        return
    if user.last_login is None or user.last_login < now - _RECENT:
        raise RequestError(
            "account.stale",
            "You signed in more than five minutes ago.",
            fix="Sign out and in again, then come back to this page.",
            status=HTTPStatus.FORBIDDEN,
        )
