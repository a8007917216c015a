"""What stands where there is nothing."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer 404 with a page."""
    return render(request, "404.html", status=404)
