"""System prompts of seasons: what each must contain, and examples."""

from django.core.exceptions import ValidationError

from swarm_protocol.prompts import SYSTEM_PROMPT

MAX_PROMPT_CHARS = 2_000
# Only the text between them is scored (`swarm_tasks.answers`).
ANSWER_TAGS = ("<answer>", "</answer>")

# A prompt to copy for each format of answers, by the format's description.
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
    """Raise ValidationError if the prompt lacks an answer tag or has unprintable characters.

    Both ANSWER_TAGS are needed. Of the characters that `str.isprintable` refuses, only line feeds
    are allowed.
    """
    if not all(tag in text for tag in ANSWER_TAGS):
        raise ValidationError(
            "Ask for the answer between <answer> and </answer>: text elsewhere scores 0."
        )
    if not all(letter.isprintable() or letter == "\n" for letter in text):
        raise ValidationError("Remove control characters; line breaks are allowed.")
