"""A NUL in an address is refused: no text of the database can hold one."""

import pytest
from django.test import Client

from swarm_web.dashboard.live.views import read_key
from swarm_web.errors import RequestError


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
def test_a_query_with_a_nul_is_refused(db: None, client: Client, path: str) -> None:
    refusal = client.get(path)
    assert (refusal.status_code, refusal.json()["code"]) == (400, "query.invalid")


def test_a_socket_that_asks_for_a_nul_is_refused() -> None:
    with pytest.raises(RequestError):
        read_key({"view": "board", "search": "\0"})
