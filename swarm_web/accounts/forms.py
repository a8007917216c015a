"""The forms of the account pages."""

from typing import Any

from allauth.account.forms import LoginForm
from django.utils.translation import gettext_lazy as _

from swarm_web.login_limit import LONGEST_NAME


class SignInForm(LoginForm):
    """allauth's form, with a field whose label says what it takes."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["login"]
        field.label = _("User name or e-mail")
        field.max_length = LONGEST_NAME
        field.widget.attrs = {"autocomplete": "username", "maxlength": LONGEST_NAME}
