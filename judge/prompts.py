"""System prompts for a season: what every one must hold, and some to begin with."""

from django.core.exceptions import ValidationError

from swarm_protocol.prompts import SYSTEM_PROMPT

MAX_PROMPT_CHARS = 2_000
# Scores are computed on what stands between them (`swarm_tasks.answers`).
ANSWER_TAGS = ("<answer>", "</answer>")

# Ways to answer, and the prompt that asks for each.
ANSWER_FORMATS = {
    "brief thoughts, then the answer": SYSTEM_PROMPT,
    "thoughts in tags of their own": (
        "Think about the problem step by step, between <think> and </think>. Then give only the "
        "final answer between <answer> and </answer>."
    ),
    "nothing but the answer": (
        "Give only the final answer, between <answer> and </answer>. Write nothing else."
    ),
}


def check_system_prompt(text: str) -> None:
    """Raise ValidationError unless a model that obeys the prompt can be scored."""
    if not all(tag in text for tag in ANSWER_TAGS):
        raise ValidationError(
            "Ask for the answer between <answer> and </answer>: what stands elsewhere scores 0."
        )
    if not all(letter.isprintable() or letter == "\n" for letter in text):
        raise ValidationError("Leave out control characters; line breaks are all right.")
