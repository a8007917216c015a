"""allauth's forms for the code of a second factor, in which a code of an app works only once.

allauth accepts a code in its own half minute and in the MFA_TOTP_TOLERANCE half minutes before and
after, but remembers for half a minute that it was used. It remembers this in the shared cache, so
not at all while Redis is down. These forms store the time of the last accepted code with the
account's authenticator app, and refuse codes of this time and earlier.
"""

from collections.abc import Iterator

from allauth.core.internal.cryptokit import compare_user_code
from allauth.mfa.base.forms import AuthenticateForm, BaseAuthenticateForm, ReauthenticateForm
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import (
    format_hotp_value,
    hotp_value,
    yield_hotp_counters_from_time,
)
from allauth.mfa.utils import decrypt
from django.db import transaction

# In the data of an app's `Authenticator`: the half minute (number since 1970) of the last code.
_LAST = "last_period"


class _CodeForm(BaseAuthenticateForm):
    """A form for a code; refuses a code of an authenticator app that was used before."""

    @transaction.atomic
    def clean_code(self) -> str:
        """Return the code. Raises ValidationError if it is wrong or was used."""
        apps = Authenticator.objects.select_for_update().filter(type=Authenticator.Type.TOTP)
        app = apps.filter(user=self.user).first()
        period = _find_period(app, self.cleaned_data["code"]) if app else None
        if app and period and period <= app.data.get(_LAST, 0):
            # No code is empty: allauth counts this one as wrong.
            self.cleaned_data["code"] = ""
        code: str = super().clean_code()
        if app and period:
            app.data[_LAST] = period
            app.save(update_fields=["data"])
        return code


def _find_period(app: Authenticator, code: str) -> int | None:
    """Return the half minute (number since 1970) of an app's code; None if it is not valid now."""
    secret = decrypt(app.data["secret"])
    periods: Iterator[int] = yield_hotp_counters_from_time()
    for period in periods:
        if compare_user_code(actual=code, expected=format_hotp_value(hotp_value(secret, period))):
            return period
    return None


class SecondFactorForm(_CodeForm, AuthenticateForm):
    """The form for a code at sign-in."""


class ConfirmationForm(_CodeForm, ReauthenticateForm):
    """The form for a code before a change that needs a recent sign-in."""
