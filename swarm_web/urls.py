"""Every address of the site."""

from django.contrib import admin
from django.urls import include, path

from swarm_web.login_limit import limit_logins

urlpatterns = [
    path("admin/login/", limit_logins(admin.site.login)),
    path("admin/", admin.site.urls),
    path("account/notifications/", include("swarm_web.notifications.urls")),
    path("api/", include("swarm_web.dashboard.api.urls")),
    path("", include("swarm_web.dashboard.urls")),
]
handler404 = "swarm_web.dashboard.pages.missing.not_found"
