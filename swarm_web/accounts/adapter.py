"""What this site decides for django-allauth."""

from allauth.account.adapter import DefaultAccountAdapter
from django.conf import settings
from django.http import HttpRequest

from swarm_web.addresses import network_of_request


class AccountAdapter(DefaultAccountAdapter):
    """Who may make an account, and what attempts are counted by."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """Tell whether strangers may make accounts."""
        return bool(settings.SIGN_UP)

    def get_client_ip(self, request: HttpRequest) -> str:
        """Return what allauth's limits count together with the request."""
        return network_of_request(request)

    def pre_authenticate(self, request: HttpRequest, **credentials: object) -> None:
        """Do not count: swarm_web.login_limit does, and lets no single address lock a name."""
