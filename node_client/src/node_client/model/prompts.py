"""The prompt of a question: system prompt and question in the model's own chat format."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast

from jinja2 import TemplateError
from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True)
class ChatMessage:
    """One message of a conversation."""

    role: Literal["user", "assistant"]
    content: str


def write_prompt(tokenizer: PreTrainedTokenizerBase, question: str, *, system_prompt: str) -> str:
    """Return the prompt of a single question."""
    return write_conversation(
        tokenizer, [ChatMessage("user", question)], system_prompt=system_prompt
    )


def write_conversation(
    tokenizer: PreTrainedTokenizerBase, messages: Sequence[ChatMessage], *, system_prompt: str
) -> str:
    """Return the prompt for the next answer.

    `messages` alternate; the first and the last are the user's. The prompt follows the tokenizer's
    chat template if there is one. Without a template, or with one that raises an error for a system
    message, the system prompt is put before the first question. An empty system prompt is left out.
    """
    first, *later = messages
    with_system = f"{system_prompt}\n\n{first.content}" if system_prompt else first.content
    if not tokenizer.chat_template:
        return "\n\n".join(_pair_up([with_system, *(each.content for each in later)])) + "\n"
    chat = [{"role": each.role, "content": each.content} for each in messages]
    if system_prompt:
        try:
            system = {"role": "system", "content": system_prompt}
            return _apply_template(tokenizer, [system, *chat])
        except TemplateError:  # some templates, such as Gemma's, have no system role
            chat[0]["content"] = with_system
    return _apply_template(tokenizer, chat)


def _pair_up(texts: Sequence[str]) -> list[str]:
    """Return each question and its answer as one text, joined by a line break.

    `texts` alternates between questions and answers; the last question has no answer yet.
    """
    return ["\n".join(texts[start : start + 2]) for start in range(0, len(texts), 2)]


def _apply_template(tokenizer: PreTrainedTokenizerBase, messages: list[dict[str, str]]) -> str:
    return cast(
        str, tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    )
