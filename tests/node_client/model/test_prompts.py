import pytest
from transformers import PreTrainedTokenizerBase

from node_client.model.demo.tokenizer import build_tokenizer
from node_client.model.prompts import write_prompt

TOLD = "Answer between <answer> and </answer>."
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
        (ROLES, TOLD, f"[system]{TOLD}[user]1 + 1?[assistant]"),
        (ROLES, "", "[user]1 + 1?[assistant]"),
        (NO_SYSTEM, TOLD, f"[user]{TOLD}\n\n1 + 1?[assistant]"),
        (NO_SYSTEM, "", "[user]1 + 1?[assistant]"),
        (None, TOLD, f"{TOLD}\n\n1 + 1?\n"),
        (None, "", "1 + 1?\n"),
    ],
    ids=[
        "roles",
        "roles, none",
        "no system role",
        "no system role, none",
        "no template",
        "nothing",
    ],
)
def test_a_question_is_put_in_the_models_own_form(
    tokenizer: PreTrainedTokenizerBase, template: str | None, system_prompt: str, prompt: str
) -> None:
    tokenizer.chat_template = template
    assert write_prompt(tokenizer, "1 + 1?", system_prompt=system_prompt) == prompt


def test_the_demo_models_read_the_question_only(tokenizer: PreTrainedTokenizerBase) -> None:
    assert write_prompt(tokenizer, "1 + 1?", system_prompt=TOLD) == "1 + 1?\n"
