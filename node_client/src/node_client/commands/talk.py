"""A conversation in a terminal, or one question through a pipe. Needs no torch of its own."""

import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from rich.console import Console
from rich.text import Text

from node_client.display.terminal import clean
from node_client.errors import SettingsError

HELP = "/reset forgets what was said, /quit or Ctrl-D ends, Ctrl-C ends an answer"


class Partner(Protocol):
    """Whom one talks to."""

    def ask(self, question: str, *, heard: Callable[[str], None]) -> None:
        """Answer; `heard` gets the text piece by piece."""

    def reset(self) -> None:
        """Forget what was said."""


def answer_once(partner: Partner, *, question: str, console: Console) -> None:
    """Print the answer to one question and nothing else. Raises SettingsError for no question."""
    if not question.strip():
        raise SettingsError(
            "There is no question in what was piped in.",
            fix="Pipe one in (echo '2 + 2?' | swarm-node chat), or run it in a terminal.",
        )
    _print_answer(partner, question.strip(), console=console)


def talk(partner: Partner, *, console: Console, read: Callable[[str], str] = input) -> None:
    """Take turns until the person ends it. `read` shows a prompt and returns a line."""
    with suppress(ImportError):
        import readline  # noqa: F401  # gives `input` a history, where the system has it

    console.print(Text(HELP, "dim"))
    while True:
        try:
            line = read("> ").strip()
        except (EOFError, KeyboardInterrupt):
            console.print()
            return
        if line == "/quit":
            return
        if line == "/reset":
            partner.reset()
            console.print(Text("All is forgotten.", "dim"))
        elif line.startswith("/"):
            console.print(Text(HELP, "dim"))
        elif line:
            _print_answer(partner, line, console=console)


def _print_answer(partner: Partner, question: str, *, console: Console) -> None:
    """Print what the model says as it says it; its control characters do not reach the terminal."""

    def hear(piece: str) -> None:
        console.print(Text(clean(piece)), end="", soft_wrap=True, highlight=False)

    with suppress(KeyboardInterrupt):
        partner.ask(question, heard=hear)
    console.print()


def piped_question() -> str | None:
    """Return what was piped in, or None when a person sits at the terminal."""
    return None if sys.stdin.isatty() else sys.stdin.read()
