"""Settings of django-allauth as code: sign-up, limits, user names."""

from allauth.account.adapter import DefaultAccountAdapter
from django.conf import settings
from django.core.validators import MaxLengthValidator, validate_slug
from django.http import HttpRequest

from swarm_web.edge.addresses import network_of_request

# User names are shown in addresses and lists: ASCII letters and digits, hyphens and underscores, so
# that no name is invisible, changes the text around it, or imitates letters of another script.
USERNAME_VALIDATORS = [validate_slug, MaxLengthValidator(40)]


class AccountAdapter(DefaultAccountAdapter):
    """The site's rules for sign-up and for allauth's limits on attempts."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """Return whether visitors may create accounts."""
        return bool(settings.SIGN_UP)

    def get_client_ip(self, request: HttpRequest) -> str:
        """Return the client's network (`edge.addresses`), to which allauth's limits then apply."""
        return network_of_request(request)

    def pre_authenticate(self, request: HttpRequest, **credentials: object) -> None:
        """Do nothing: `edge.login_limit` counts sign-in attempts instead of allauth."""
