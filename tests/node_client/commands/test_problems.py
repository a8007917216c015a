"""How a command reports a problem."""

import pytest
import typer

from node_client.commands.problems import FAILED, REFUSED, explained_problems
from node_client.errors import CoordinatorRefusedError
from swarm_protocol.errors import ErrorCode, RefusedError


def test_text_of_a_coordinator_cannot_control_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(typer.Exit) as ended, explained_problems():
        raise CoordinatorRefusedError("No.\x1b]0;title\x07", fix="Wait.\x1b[2J", code="\x1b[2J")
    shown = capsys.readouterr().err
    assert ended.value.exit_code == REFUSED
    assert "No." in shown
    assert "Wait." in shown
    assert "\x1b]" not in shown
    assert "\x1b[2J" not in shown


def test_failing_verifier_is_reported_with_a_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as ended, explained_problems():
        raise RefusedError(ErrorCode.VERIFIER_FAILED, "the verifier child did not start")
    shown = capsys.readouterr().err
    assert ended.value.exit_code == FAILED
    assert "verifier.failed: the verifier child did not start" in shown
    assert "swarm-node doctor" in shown
