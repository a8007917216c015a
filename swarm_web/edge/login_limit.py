"""How often somebody may try to sign in with a password: counted by address and by name, in Redis.

An attempt counts before the password is looked at, so that many at once are no way around. What is
refused because of its address does not count for the name: one address alone cannot keep an
operator out. An attempt with the right password does not count afterwards; allauth limits the codes
of a second factor, which follow it. While Redis is away nobody is refused.
"""

import hashlib
import logging
from collections.abc import Callable
from functools import wraps
from http import HTTPStatus

import redis.exceptions
from django.contrib.auth.forms import UsernameField
from django.http import HttpRequest, HttpResponseBase

from swarm_web.core.attempts import count_attempt
from swarm_web.core.errors import answer_refusals
from swarm_web.core.store import sync_redis
from swarm_web.edge.addresses import network_of_request

logger = logging.getLogger(__name__)

MOST_OF_ADDRESS = 10
MOST_OF_NAME = 30
PERIOD_S = 300
# Challenges for passkeys that an address may ask for: each is kept, in a session of its own.
MOST_CHALLENGES = 30
# The longest name that the sign-in form looks up.
LONGEST_NAME = 254

Login = Callable[[HttpRequest], HttpResponseBase]


def limit_logins(login: Login) -> Login:
    """Refuse attempts at a login view that come too often, before the view sees them."""

    @wraps(login)
    @answer_refusals
    def limited(request: HttpRequest) -> HttpResponseBase:
        if request.method != "POST":
            return login(request)
        name = read_name(request.POST.get("login", ""))
        of_address = f"logins:address:{network_of_request(request)}"
        digest = hashlib.sha256(name.encode()).hexdigest()
        of_name = f"logins:name:{digest}"
        _count(of_address, most=MOST_OF_ADDRESS)
        _count(of_name, most=MOST_OF_NAME)
        answer = login(request)
        if answer.status_code == HTTPStatus.FOUND:
            _take_back(of_address, of_name)
        return answer

    return limited


def limit_challenges(view: Login) -> Login:
    """Refuse requests at allauth's view for passkeys that come too often from one address."""

    @wraps(view)
    @answer_refusals
    def limited(request: HttpRequest) -> HttpResponseBase:
        _count(f"logins:challenges:{network_of_request(request)}", most=MOST_CHALLENGES)
        return view(request)

    return limited


def read_name(sent: str) -> str:
    """Return a user name or e-mail address as one of the spellings that find the same account.

    Names longer than the form accepts stay as they are: normalising many combining marks takes
    quadratic time and blocks the whole process.
    """
    return (UsernameField(max_length=LONGEST_NAME).to_python(sent) or "").casefold()


def _count(key: str, *, most: int) -> None:
    count_attempt(
        key,
        most=most,
        period_s=PERIOD_S,
        code="login.limited",
        message="Too many attempts to log in, with this name or from this address.",
    )


def _take_back(*keys: str) -> None:
    """Subtract the attempt; earlier ones count on, or one's own account would clear guesses."""
    try:
        with sync_redis().pipeline() as pipeline:
            for key in keys:
                pipeline.set(key, 1, ex=PERIOD_S, nx=True)
                pipeline.decr(key)
            pipeline.execute()
    except redis.exceptions.RedisError:
        logger.warning("could not take back an attempt to log in", exc_info=True)
