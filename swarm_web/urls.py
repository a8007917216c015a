"""The URLs of the site."""

from allauth.account.decorators import secure_admin_login
from allauth.account.views import login
from allauth.mfa.webauthn.views import login_webauthn
from django.contrib import admin
from django.urls import include, path, re_path

from swarm_web.accounts.views.owners import owner
from swarm_web.edge.login_limit import limit_challenges, limit_logins

# Operators sign in as everybody does: the admin's own log-in asks for no second factor.
admin.site.login = secure_admin_login(admin.site.login)  # type: ignore[method-assign]

urlpatterns = [
    path("account/login/", limit_logins(login), name="account_login"),
    path(
        "account/2fa/webauthn/login/",
        limit_challenges(login_webauthn),
        name="mfa_login_webauthn",
    ),
    path("account/", include("swarm_web.accounts.urls")),
    path("account/", include("allauth.urls")),
    re_path(r"^owners/(?P<username>[\w.@+-]+)/$", owner, name="owner"),
    path("admin/", admin.site.urls),
    path("device/", include("swarm_web.joining.urls")),
    path("account/notifications/", include("swarm_web.notifications.urls")),
    path("api/", include("swarm_web.dashboard.api.urls")),
    path("", include("swarm_web.dashboard.urls")),
]
handler404 = "swarm_web.dashboard.pages.texts.not_found"
