"""Test that text which the database cannot store is rejected: NUL and lone surrogates."""

import pytest
from django.test import Client

from swarm_web.core.errors import RequestError
from swarm_web.dashboard.live.views import read_key


@pytest.mark.parametrize(
    "path",
    [
        "/leaderboard/?search=%00",
        "/leaderboard/figure.json?model=a%00b",
        "/rollouts/?q=%00",
        "/rounds/?season=%00",
        "/downloads/rewards.csv?node=%00",
        "/api/v1/nodes?search=%00",
    ],
)
def test_query_with_a_nul_returns_400(db: None, client: Client, path: str) -> None:
    refusal = client.get(path)
    assert (refusal.status_code, refusal.json()["code"]) == (400, "query.invalid")


def test_live_view_with_a_nul_is_rejected() -> None:
    with pytest.raises(RequestError):
        read_key({"view": "board", "search": "\0"})


@pytest.mark.parametrize("path", ["login/", "signup/", "password/reset/"])
def test_form_in_another_encoding_returns_415(db: None, client: Client, path: str) -> None:
    part = 'Content-Disposition: form-data; name="{}"\r\n\r\na+2AA-b'
    names = ("login", "username", "email", "password", "password1", "password2")
    body = "--x\r\n" + "\r\n--x\r\n".join(map(part.format, names)) + "\r\n--x--\r\n"
    refusal = client.post(
        f"/account/{path}",
        body,
        content_type="multipart/form-data; boundary=x; charset=utf-7",
    )
    assert (refusal.status_code, refusal.json()["code"]) == (415, "request.encoding")
