import pytest
from transformers import PreTrainedTokenizerBase

from node_client.model.demo.tokenizer import build_tokenizer
from node_client.model.prompts import write_prompt

INSTRUCTION = "Answer between <answer> and </answer>."
ROLES = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}[assistant]"
NO_SYSTEM = (
    "{% if messages[0].role == 'system' %}{{ raise_exception('no system role') }}{% endif %}"
    + ROLES
)


@pytest.fixture
def tokenizer() -> PreTrainedTokenizerBase:
    return build_tokenizer()


@pytest.mark.parametrize(
    ("template", "system_prompt", "prompt"),
    [
        (ROLES, INSTRUCTION, f"[system]{INSTRUCTION}[user]1 + 1?[assistant]"),
        (ROLES, "", "[user]1 + 1?[assistant]"),
        (NO_SYSTEM, INSTRUCTION, f"[user]{INSTRUCTION}\n\n1 + 1?[assistant]"),
        (NO_SYSTEM, "", "[user]1 + 1?[assistant]"),
        (None, INSTRUCTION, f"{INSTRUCTION}\n\n1 + 1?\n"),
        (None, "", "1 + 1?\n"),
    ],
    ids=[
        "roles",
        "roles, none",
        "no system role",
        "no system role, none",
        "no template",
        "no template, none",
    ],
)
def test_question_is_written_in_the_chat_format_of_the_model(
    tokenizer: PreTrainedTokenizerBase, template: str | None, system_prompt: str, prompt: str
) -> None:
    tokenizer.chat_template = template
    assert write_prompt(tokenizer, "1 + 1?", system_prompt=system_prompt) == prompt


def test_prompt_of_demo_models_contains_only_the_question(
    tokenizer: PreTrainedTokenizerBase,
) -> None:
    assert write_prompt(tokenizer, "1 + 1?", system_prompt=INSTRUCTION) == "1 + 1?\n"
