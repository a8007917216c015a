"""Test the output of the launcher."""

import pytest

from swarm_web.local.console import Console
from tests.local.transcript import Transcript


async def test_names_are_coloured_only_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    terminal, file = Transcript(is_terminal=True), Transcript()
    for out in (terminal, file):
        Console(out).line("web", "hello")
    assert terminal.getvalue().startswith("\x1b[")
    assert file.getvalue() == "web        | hello\n"


async def test_no_color_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    terminal = Transcript(is_terminal=True)
    Console(terminal).line("web", "hello")
    assert "\x1b" not in terminal.getvalue()


async def test_stage_prints_its_start_and_its_duration() -> None:
    out = Transcript()
    with Console(out).stage("Counting birds"):
        assert "Counting birds ..." in out.getvalue()
    assert "Counting birds: done in 0.0 s" in out.getvalue()


async def test_failed_stage_is_not_reported_as_done() -> None:
    out = Transcript()
    with pytest.raises(ZeroDivisionError), Console(out).stage("Counting birds"):
        _ = 1 / 0
    assert "done" not in out.getvalue()


async def test_closed_pipe_does_not_stop_the_site() -> None:
    class ClosedPipe(Transcript):
        def write(self, text: str, /) -> int:
            raise BrokenPipeError

    Console(ClosedPipe()).write("still here")
