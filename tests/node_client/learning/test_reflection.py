"""The reflection lexicon: which phrases count as which pattern, in English and Chinese."""

import pytest

from node_client.learning.reflection import LEXICON, find_patterns, reflection_shares


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("12 * 3 = 36. Let me double-check: 36 / 3 = 12.", "recheck"),
        ("所以答案是 7。让我再检查。", "recheck"),
        ("Wait, the sign is negative.", "hesitation"),
        ("That can’t be right.", "hesitation"),
        ("等等,这里漏了一个数。", "hesitation"),
        ("Alternatively, factor the left side.", "exploration"),
        ("换一种方法来解。", "exploration"),
    ],
)
def test_phrase_counts_only_as_its_own_pattern(text: str, pattern: str) -> None:
    assert find_patterns(text) == {pattern}


@pytest.mark.parametrize(
    "text",
    [
        "<answer>12</answer>",
        "The waiter brought hmmm",
        "retiaw spelled backward is waiter, awaiting",
        "一共有三种水果",
    ],
)
def test_words_that_only_resemble_a_phrase_do_not_count(text: str) -> None:
    assert find_patterns(text) == set()


def test_completion_can_have_several_patterns() -> None:
    text = "Hmm, 7 is odd. Let's try another approach, then verify this."
    assert find_patterns(text) == {"hesitation", "exploration", "recheck"}


def test_share_counts_completions_not_words() -> None:
    shares = reflection_shares(["wait wait wait", "5", "wait, let me check", "6"])
    assert shares == {"recheck": 0.25, "hesitation": 0.5, "exploration": 0.0}


def test_every_phrase_is_found_as_its_own_pattern() -> None:
    for pattern, phrases in LEXICON.items():
        for phrase in phrases:
            assert pattern in find_patterns(f"({phrase})"), phrase
