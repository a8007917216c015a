"""Chat in a terminal, or one question through a pipe. Imports no torch."""

import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from rich.console import Console
from rich.text import Text

from node_client.display.terminal import clean
from node_client.errors import SettingsError

HELP = "/reset clears the conversation, /quit or Ctrl-D ends it, Ctrl-C ends an answer"


class ChatModel(Protocol):
    """A model to chat with, which remembers the conversation."""

    def ask(self, question: str, *, on_text: Callable[[str], None]) -> None:
        """Answer a question; `on_text` receives the answer in pieces."""

    def reset(self) -> None:
        """Clear the conversation."""


def answer_once(model: ChatModel, *, question: str, console: Console) -> None:
    """Print the answer to `question` and nothing else. Raises SettingsError for a blank one."""
    if not question.strip():
        raise SettingsError(
            "The input of the pipe has no question.",
            fix="Pipe one in (echo '2 + 2?' | swarm-node chat), or run it in a terminal.",
        )
    _print_answer(model, question.strip(), console=console)


def talk(model: ChatModel, *, console: Console, read: Callable[[str], str] = input) -> None:
    """Read questions and print answers until the user ends the conversation.

    The user ends it with `/quit`, or with Ctrl-D or Ctrl-C at the prompt. `read` is called with the
    prompt to show and returns the line that the user entered, like `input`.
    """
    with suppress(ImportError):
        import readline  # noqa: F401  # gives `input` a history, if the system has it

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
            model.reset()
            console.print(Text("The conversation is cleared.", "dim"))
        elif line.startswith("/"):
            console.print(Text(HELP, "dim"))
        elif line:
            _print_answer(model, line, console=console)


def _print_answer(model: ChatModel, question: str, *, console: Console) -> None:
    """Print the answer as it is generated, without control characters. Ctrl-C ends the answer."""

    def print_piece(piece: str) -> None:
        console.print(Text(clean(piece)), end="", soft_wrap=True, highlight=False)

    with suppress(KeyboardInterrupt):
        model.ask(question, on_text=print_piece)
    console.print()


def piped_question() -> str | None:
    """Return the whole standard input, or None if that is a terminal."""
    return None if sys.stdin.isatty() else sys.stdin.read()
