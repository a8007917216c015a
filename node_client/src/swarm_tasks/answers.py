"""What of a completion is its answer: pure, and in time that grows with the text's length."""

_OPENING, _CLOSING = "<answer>", "</answer>"


def find_answer(text: str) -> str | None:
    """Return what stands in the text's last pair of answer tags, stripped; None without a pair.

    A pair is an opening tag and the first closing tag after it; pairs do not overlap. The result is
    that of `extract_answer` of reasoning-gym, whose regular expression takes time that grows with
    the square of the number of opening tags.
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
