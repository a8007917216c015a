"""Addresses below /api/."""

from django.urls import path, re_path
from django.views.generic import RedirectView

from swarm_web.dashboard.api import pages
from swarm_web.dashboard.api.site import api

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="api-docs")),
    path("openapi.json", pages.openapi, name="openapi"),
    path("docs", pages.docs, name="api-docs"),
    path("", api.urls),
    re_path(r"", pages.unknown),
]
