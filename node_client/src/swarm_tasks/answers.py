"""Finds the answer in a completion, by versioned rules; no I/O, linear time.

A season keeps the version that it began with (`docs/tasks.md`), so its rounds stay comparable. A
new version is a new member of `AnswerRules`; old versions never change.
"""

import re
from enum import StrEnum

_OPENING, _CLOSING = "<answer>", "</answer>"
# The pattern has no repetition, so no text makes it slow. ASCII, because other alphabets have
# letters whose lower case is one of these.
_ANY_TAG = re.compile("<(/?)answer>", re.IGNORECASE | re.ASCII)

# How many wrappings are removed, such as all of "The answer is **$\\boxed{42}$**." Each one gives
# the verifier another answer to score.
MAX_WRAPPINGS = 5
_PAIRS = (
    *(("`", "`"), ("$$", "$$"), ("$", "$"), ("\\(", "\\)"), ("\\[", "\\]")),
    *(("**", "**"), ("__", "__"), ("*", "*"), ("_", "_")),
    *(('"', '"'), ("'", "'"), ("“", "”"), ("‘", "’"), ("«", "»"), ("「", "」")),
    *(("\\boxed{", "}"), ("\\text{", "}")),
)
_FENCE = "```"
_LANGUAGE = re.compile(r"[A-Za-z0-9_+-]{0,20}[ \t]{0,8}\n")
_STOPS = (".", "。")
_ENDS = frozenset([*(closing[-1] for _, closing in _PAIRS), *_STOPS])
# Repetitions are bounded, and the pattern is tried only at the beginning, so no text makes it slow.
_LEAD_IN = re.compile(
    r"(\*\*|__|)(?:(?:so|thus|hence|therefore),? )?(?:the |my )?(?:final |correct )?"
    r"answer\b ?(?:is\b ?:?|[:=])?\1 ?[:=]?\s{0,8}",
    re.IGNORECASE | re.ASCII,
)
# The characters that a lead-in may begin with.
_STARTS = frozenset("*_sthmfcaSTHMFCA")


class AnswerRules(StrEnum):
    """The versions of the rules by which `list_answers` reads the answer in a completion."""

    # The text between the last answer tags, without outer spaces.
    EXACT = "answers-1"
    # Also that text without the wrappings that people and models put around answers, and tags in
    # any case.
    UNWRAPPED = "answers-2"


NEWEST_RULES = AnswerRules.UNWRAPPED


def find_rules(name: str) -> AnswerRules:
    """Return the rules of this name, or the newest rules if this program does not know the name."""
    try:
        return AnswerRules(name)
    except ValueError:
        return NEWEST_RULES


def list_answers(text: str, *, rules: AnswerRules) -> list[str]:
    """Return the readings of a completion's answer. The caller scores all; the best score counts.

    The list is empty if the completion has no pair of answer tags. The first reading is the text in
    the last pair (`find_answer`). With the rules EXACT, it is the only one.

    With the rules UNWRAPPED, tags in upper or mixed case count if no pair is in lower case. Up to
    MAX_WRAPPINGS further readings follow. Each of them is the previous reading without its
    outermost wrapping, such as quotes or `**`. A completion cannot get two different answers
    scored, because all readings come from one text.
    """
    answer = find_answer(text)
    if rules is AnswerRules.EXACT:
        return [] if answer is None else [answer]
    if answer is None:
        answer = _find_in_any_case(text)
    return [] if answer is None else _unwrap(answer)


def find_answer(text: str) -> str | None:
    """Return the text in the last pair of answer tags, without outer spaces; None without a pair.

    A pair is an opening tag and the first closing tag after it; pairs do not overlap. The result is
    the same as that of reasoning-gym's `extract_answer`, which uses a regular expression that takes
    time quadratic in the number of opening tags.
    """
    answer = None
    at = text.find(_OPENING)
    while at >= 0:
        begin = at + len(_OPENING)
        end = text.find(_CLOSING, begin)
        if end < 0:
            break
        answer = text[begin:end]
        at = text.find(_OPENING, end + len(_CLOSING))
    return None if answer is None else answer.strip()


def _find_in_any_case(text: str) -> str | None:
    """Find the answer like `find_answer`, but accept tags in upper, lower or mixed case."""
    answer, begin = None, None
    for tag in _ANY_TAG.finditer(text):
        closes = bool(tag[1])
        if begin is None and not closes:
            begin = tag.end()
        elif begin is not None and closes:
            answer, begin = text[begin : tag.start()], None
    return None if answer is None else answer.strip()


def _unwrap(answer: str) -> list[str]:
    """Return the answer, then the answer after each step of removing its outermost wrapping.

    At most MAX_WRAPPINGS wrappings are removed.
    """
    answers = [answer]
    # Nearly all answers have no wrapping, so the loop ends at once.
    while answer[-1:] in _ENDS or (answer[:1] in _STARTS and _LEAD_IN.match(answer)):
        answer = _strip_wrapping(answer).strip()
        if not answer or len(answers) > MAX_WRAPPINGS:
            break
        answers.append(answer)
    return answers


def _strip_wrapping(answer: str) -> str:
    """Return the answer without its outermost wrapping, or an empty text if it has no wrapping.

    A wrapping is a lead-in such as "The answer is", a pair such as quotes, or a final full stop.
    """
    if lead_in := _LEAD_IN.match(answer):
        return answer[lead_in.end() :]
    if answer.startswith(_FENCE) and answer.endswith(_FENCE):
        inside = answer[len(_FENCE) : -len(_FENCE)]
        language = _LANGUAGE.match(inside)
        code = inside[language.end() :] if language else ""
        return code if code.strip() else inside
    for opening, closing in _PAIRS:
        if answer.startswith(opening) and answer.endswith(closing):
            return answer[len(opening) : -len(closing)]
    return answer[:-1] if answer.endswith(_STOPS) else ""
