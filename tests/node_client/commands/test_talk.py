import io
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec
import pytest
from rich.console import Console
from typer.testing import CliRunner

from node_client.cli import app
from node_client.commands.models import season_prompt
from node_client.commands.talk import answer_once, talk
from node_client.errors import SettingsError
from node_client.settings.config import choose
from node_client.storage.state import NodeRecord, StateDir
from tests.node_client.fakes import toy_policy, toy_season


class Echo:
    """A partner that repeats the question in two pieces."""

    def __init__(self) -> None:
        self.questions: list[str] = []
        self.resets = 0
        self.interrupt = False

    def ask(self, question: str, *, on_text: Callable[[str], None]) -> None:
        self.questions.append(question)
        on_text(question[:3])
        if self.interrupt:
            raise KeyboardInterrupt
        on_text(question[3:])

    def reset(self) -> None:
        self.resets += 1


def typed(lines: Iterable[str]) -> Callable[[str], str]:
    waiting = iter(lines)

    def read(prompt: str) -> str:
        try:
            return next(waiting)
        except StopIteration:
            raise EOFError from None

    return read


def talked(partner: Echo, *lines: str) -> str:
    out = io.StringIO()
    talk(partner, console=Console(file=out, width=80), read=typed(lines))
    return out.getvalue()


def test_conversation_continues_until_quit() -> None:
    partner = Echo()
    assert "hello there" in talked(partner, "hello there", "", "/quit", "never questions")
    assert partner.questions == ["hello there"]


def test_slash_commands_are_not_sent_to_the_model() -> None:
    partner = Echo()
    assert "/reset clears" in talked(partner, "/reset", "/rest")
    assert (partner.resets, partner.questions) == (1, [])


def test_interrupted_answer_does_not_end_the_conversation() -> None:
    partner = Echo()
    partner.interrupt = True
    talked(partner, "first", "second")
    assert partner.questions == ["first", "second"]


def test_text_of_a_model_cannot_control_the_terminal_or_be_read_as_markup() -> None:
    out = talked(Echo(), "a\x1b[2J\x07b\u202ec\rd [red]e\tf")
    assert "a[2Jbcd [red]e" in out
    assert not {"\x1b", "\x07", "\u202e", "\r"} & set(out)


def test_piped_question_prints_only_its_answer() -> None:
    out = io.StringIO()
    answer_once(Echo(), question="What?\n", console=Console(file=out))
    assert out.getvalue() == "What?\n"


def test_empty_piped_question_is_refused() -> None:
    with pytest.raises(SettingsError, match="no question"):
        answer_once(Echo(), question="\n", console=Console())


def test_named_model_answers(tmp_path: Path) -> None:
    toy_policy().save(tmp_path / "model")
    arguments = ["chat", "--model", str(tmp_path / "model"), "--max-new-tokens", "3"]
    result = CliRunner().invoke(app, [*arguments, "--device", "cpu"], input="1 + 1?")
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [([], "no intact checkpoint"), (["--model", "tiny", "--checkpoint", "3"], "two models")],
)
def test_missing_or_ambiguous_model_is_refused(
    tmp_path: Path, arguments: list[str], message: str
) -> None:
    result = CliRunner().invoke(app, ["chat", "--state-dir", str(tmp_path), *arguments], input="?")
    assert result.exit_code == 1
    assert message in result.output


def test_prompt_of_the_season_needs_the_state_folder_only(tmp_path: Path) -> None:
    season = msgspec.structs.replace(toy_season(), system_prompt="Be brief.")
    StateDir(tmp_path).save(NodeRecord(url="https://swarm.example.org", season=season))
    assert season_prompt(choose(None, flags={"state_dir": tmp_path}, environment={})) == "Be brief."
