"""The account page."""

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache


@never_cache
@login_required
def account(request: HttpRequest) -> HttpResponse:
    """Show somebody's account."""
    return render(request, "account/index.html")
