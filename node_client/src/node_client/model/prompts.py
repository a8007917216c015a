"""How a question is put to a model: with the season's system prompt, in the model's own form."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast

from jinja2 import TemplateError
from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True)
class Turn:
    """What one side of a conversation said."""

    role: Literal["user", "assistant"]
    content: str


def write_prompt(tokenizer: PreTrainedTokenizerBase, question: str, *, system_prompt: str) -> str:
    """Return the text that a completion of a single question follows."""
    return write_conversation(tokenizer, [Turn("user", question)], system_prompt=system_prompt)


def write_conversation(
    tokenizer: PreTrainedTokenizerBase, turns: Sequence[Turn], *, system_prompt: str
) -> str:
    """Return the text that the next answer follows; the last turn is the user's.

    With the tokenizer's chat template if it has one; a template without a system role gets the
    system prompt in the first question. An empty system prompt leaves the questions alone.
    """
    first, *later = turns
    whole = f"{system_prompt}\n\n{first.content}" if system_prompt else first.content
    if not tokenizer.chat_template:
        return "\n\n".join(_pair_up([whole, *(turn.content for turn in later)])) + "\n"
    messages = [{"role": turn.role, "content": turn.content} for turn in turns]
    if system_prompt:
        try:
            told = {"role": "system", "content": system_prompt}
            return _apply_template(tokenizer, [told, *messages])
        except TemplateError:  # some templates, such as Gemma's, know no system role
            messages[0]["content"] = whole
    return _apply_template(tokenizer, messages)


def _pair_up(texts: Sequence[str]) -> list[str]:
    """Join each question with its answer, line by line; the last one has none yet."""
    return ["\n".join(texts[start : start + 2]) for start in range(0, len(texts), 2)]


def _apply_template(tokenizer: PreTrainedTokenizerBase, messages: list[dict[str, str]]) -> str:
    return cast(
        str, tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    )
