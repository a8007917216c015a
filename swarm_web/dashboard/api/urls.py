"""URL patterns below /api/."""

from django.urls import path, re_path
from django.views.generic import RedirectView

from swarm_web.dashboard.api import site

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="api-docs")),
    path("openapi.json", site.openapi, name="openapi"),
    path("docs", site.docs, name="api-docs"),
    path("", site.api.urls),
    re_path(r"", site.unknown),
]
