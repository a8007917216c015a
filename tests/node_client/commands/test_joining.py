"""What a person sees who is asked to approve a code."""

import pytest
import segno

from node_client.commands.joining import draw_code, draw_qr
from swarm_protocol.joining import DeviceCode

CODE = DeviceCode(
    device_code="the-secret",
    user_code="BCDF-GHJK",
    verification_uri="https://swarm.example.org/device/",
    verification_uri_complete="https://swarm.example.org/device/?code=BCDF-GHJK",
    expires_in=900,
    interval=2,
)


@pytest.mark.parametrize("terminal", [True, False])
def test_code_and_address_are_shown_and_the_secret_is_not(terminal: bool) -> None:
    shown = draw_code(CODE, terminal=terminal).plain
    assert "BCDF-GHJK" in shown
    assert "https://swarm.example.org/device/" in shown
    assert "valid for 15 minutes" in shown
    assert "the-secret" not in shown


def test_a_log_gets_no_qr_code() -> None:
    assert "█" not in draw_code(CODE, terminal=False).plain


def test_the_qr_code_fits_a_small_terminal() -> None:
    lines = draw_code(CODE, terminal=True).plain.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) < 80


def test_the_qr_code_holds_the_whole_address() -> None:
    halves = {" ": (0, 0), "▀": (1, 0), "▄": (0, 1), "█": (1, 1)}
    drawn = []
    for line in draw_qr(CODE.verification_uri_complete).plain.splitlines():
        drawn += [list(row) for row in zip(*(halves[character] for character in line), strict=True)]
    made = segno.make_qr(CODE.verification_uri_complete, error="l").matrix_iter(border=2)
    assert drawn[: len(drawn[0])] == [list(row) for row in made]
