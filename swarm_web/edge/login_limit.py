"""Limits on password logins in PERIOD_S seconds, counted in Redis by address and by name.

An IPv6 address counts as its /64 network. An attempt is counted before the password is checked, so
that simultaneous attempts cannot bypass the limit. An attempt refused for its address does not
count for the name: a single address cannot lock an operator out. An attempt with the right password
is subtracted afterwards; if the login also needs a second-factor code, allauth limits the codes.
While Redis is unavailable, no attempt is refused.
"""

import hashlib
from collections.abc import Callable
from functools import wraps
from http import HTTPStatus

from django.contrib.auth.forms import UsernameField
from django.http import HttpRequest, HttpResponseBase

from swarm_web.core.attempts import count_attempt, uncount_attempts
from swarm_web.core.errors import answer_refusals
from swarm_web.edge.addresses import network_of_request

MAX_PER_ADDRESS = 10
MAX_PER_NAME = 30
PERIOD_S = 300
# Passkey challenges that an address may request in PERIOD_S. Each is stored in its own session.
MAX_CHALLENGES = 30
# The longest name that the login form looks up.
MAX_NAME_LENGTH = 254

Login = Callable[[HttpRequest], HttpResponseBase]


def limit_logins(login: Login) -> Login:
    """Wrap a login view: refuse a POST that exceeds MAX_PER_ADDRESS or MAX_PER_NAME.

    The view is not called for a refused POST. If the view redirects (302), the password was right
    or the visitor was already signed in, and the attempt is not counted.
    """

    @wraps(login)
    @answer_refusals
    def limited(request: HttpRequest) -> HttpResponseBase:
        if request.method != "POST":
            return login(request)
        name = read_name(request.POST.get("login", ""))
        address_key = f"logins:address:{network_of_request(request)}"
        digest = hashlib.sha256(name.encode()).hexdigest()
        name_key = f"logins:name:{digest}"
        _count(address_key, limit=MAX_PER_ADDRESS)
        _count(name_key, limit=MAX_PER_NAME)
        response = login(request)
        if response.status_code == HTTPStatus.FOUND:
            uncount_attempts(address_key, name_key, period_s=PERIOD_S)
        return response

    return limited


def limit_challenges(view: Login) -> Login:
    """Wrap allauth's passkey view to limit the requests of each address.

    After MAX_CHALLENGES requests in PERIOD_S seconds, further ones are refused without calling the
    view.
    """

    @wraps(view)
    @answer_refusals
    def limited(request: HttpRequest) -> HttpResponseBase:
        _count(f"logins:challenges:{network_of_request(request)}", limit=MAX_CHALLENGES)
        return view(request)

    return limited


def read_name(name: str) -> str:
    """Return a user name or e-mail address in the form under which its attempts are counted.

    All spellings of a name that log in to the same account have the same form. Unicode
    normalisation is left out for names longer than the login form accepts: with many combining
    marks it takes quadratic time and blocks the whole process.
    """
    return (UsernameField(max_length=MAX_NAME_LENGTH).to_python(name) or "").casefold()


def _count(key: str, *, limit: int) -> None:
    count_attempt(
        key,
        limit=limit,
        period_s=PERIOD_S,
        code="login.limited",
        message="Too many attempts to log in, with this name or from this address.",
    )
