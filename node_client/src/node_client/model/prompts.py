"""How a question is put to a model: with the season's system prompt, in the model's own form."""

from typing import cast

from jinja2 import TemplateError
from transformers import PreTrainedTokenizerBase


def write_prompt(tokenizer: PreTrainedTokenizerBase, question: str, *, system_prompt: str) -> str:
    """Return the text that a completion follows.

    With the tokenizer's chat template if it has one; a template without a system role gets the
    system prompt in the question. An empty system prompt leaves the question alone.
    """
    whole = f"{system_prompt}\n\n{question}" if system_prompt else question
    if not tokenizer.chat_template:
        return f"{whole}\n"
    asked = {"role": "user", "content": question}
    if system_prompt:
        try:
            told = {"role": "system", "content": system_prompt}
            return _apply_template(tokenizer, [told, asked])
        except TemplateError:  # some templates, such as Gemma's, know no system role
            asked["content"] = whole
    return _apply_template(tokenizer, [asked])


def _apply_template(tokenizer: PreTrainedTokenizerBase, messages: list[dict[str, str]]) -> str:
    return cast(
        str, tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    )
