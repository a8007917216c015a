"""What stands where there is nothing."""

from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django.shortcuts import render

from swarm_web.errors import RequestError


def not_found(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    """Answer 404: JSON under /api/, else a page."""
    if request.path.startswith("/api/"):
        refusal = RequestError(
            "not_found", f"There is no {request.path[:200]}.", fix="See /api/docs.", status=404
        )
        return JsonResponse(refusal.body(), status=404)
    return render(request, "404.html", status=404)
