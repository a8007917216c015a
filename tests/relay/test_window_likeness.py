"""Detection of copies, also with changed words, without false positives for honest nodes."""

from collections.abc import Callable, Sequence
from random import Random

import pytest

from swarm_web.relay.likeness import Likeness, digest, liken
from swarm_web.relay.window import Outcome
from tests.relay.windows import entry, make_window

# Phrases that a small model may use for a sum.
OPENINGS = ["Let me add", "First I add", "We need", "The sum of", "Adding", "I take", "To get"]
MIDDLES = ["both numbers", "them up", "the two", "these", "each digit", "what is given", "it all"]


def words(random: Random, count: int) -> str:
    """Return a random text of `count` words."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    return " ".join("".join(random.choices(letters, k=random.randint(2, 8))) for _ in range(count))


def reasoning(random: Random, completions: int = 8) -> list[str]:
    """Return completions of about 400 characters, as of a model that reasons at length."""
    return [
        f"{words(random, 65)} <answer>{random.randrange(9)}</answer>" for _ in range(completions)
    ]


def change_words(texts: Sequence[str], *, share: float, random: Random) -> list[str]:
    changed = []
    for text in texts:
        parts = text.split(" ")
        for place in random.sample(range(len(parts)), round(share * len(parts))):
            parts[place] = words(random, 1)
        changed.append(" ".join(parts))
    return changed


def question(number: int) -> bytes:
    return b'{"dataset":"basic_arithmetic","index":%d}' % number


def near(one: Sequence[str], other: Sequence[str]) -> bool:
    return liken(other).is_near(liken(one))


# Completions of honest small models to one question, from always right to degenerate.
HONEST: dict[str, Callable[[Random], str]] = {
    "always-right": lambda random: "<answer>4</answer>",
    "mostly-right": lambda random: f"<answer>{random.choice([4, 4, 4, 5])}</answer>",
    "digits": lambda random: f"<answer>{random.randrange(10)}</answer>",
    "bare-numbers": lambda random: str(random.randrange(40)),
    "empty": lambda random: "",
    "stuck": lambda random: "0 " * 200,
    "template": lambda random: (
        f"<think>{random.choice(OPENINGS)} {random.choice(MIDDLES)}: 12 + 30 = "
        f"{random.randrange(38, 46)}.</think> <answer>{random.randrange(38, 46)}</answer>"
    ),
    "long-template": lambda random: " ".join(
        f"{random.choice(OPENINGS)} {random.choice(MIDDLES)}, step {step} of the whole sum."
        for step in range(8)
    ),
}


@pytest.mark.parametrize("policy", HONEST)
def test_honest_nodes_with_similar_answers_are_not_duplicates(policy: str) -> None:
    random, window = Random(1), make_window()
    for step in range(12):
        for node in range(10):
            for place in range(8):
                number = (step * 10 + node) * 8 + place
                texts = [HONEST[policy](random) for _ in range(8)]
                new = entry(node, number, task=question(number), texts=texts)
                added = window.add(new, now=0)
                assert added is Outcome.ADDED


@pytest.mark.parametrize("policy", HONEST)
def test_honest_node_that_repeats_questions_has_no_duplicates(policy: str) -> None:
    random, window = Random(2), make_window()
    for number in range(1000):
        texts = [HONEST[policy](random) for _ in range(8)]
        new = entry(1, number, task=question(number % 100), texts=texts)
        assert window.add(new, now=0) is Outcome.ADDED


def test_copy_with_a_new_id_is_a_duplicate_from_any_node() -> None:
    window, texts = make_window(), reasoning(Random(3))
    for node, outcome in [(1, Outcome.ADDED), (1, Outcome.DUPLICATE), (2, Outcome.DUPLICATE)]:
        copy = entry(node, len(window) + 5, task=b"t", texts=texts)
        assert window.add(copy, now=0) is outcome


def test_own_rollouts_resent_with_changed_words_are_near_duplicates() -> None:
    random, window = Random(4), make_window()
    outcomes = []
    for number in range(50):
        texts = reasoning(random)
        for copy in range(3):
            completions = change_words(texts, share=0.05, random=random) if copy else texts
            random.shuffle(completions)
            new = entry(1, 3 * number + copy, task=question(number), texts=completions)
            outcomes.append(window.add(new, now=0))
    assert outcomes.count(Outcome.ADDED) == 50
    assert outcomes.count(Outcome.NEAR_DUPLICATE) == 100


def test_copy_with_a_repeated_completion_is_detected() -> None:
    texts = reasoning(Random(9))
    copy = [texts[1], *texts[1:]]
    assert not liken(copy).is_remembered
    assert near(texts, copy)


def test_rollout_with_a_repeated_completion_is_not_remembered() -> None:
    texts = reasoning(Random(10))
    completions = [texts[1], *texts[1:]]
    assert not near(completions, completions)


def test_changed_copy_of_another_partys_rollout_is_not_compared() -> None:
    random, window = Random(5), make_window()
    texts = reasoning(random)
    changed = change_words(texts, share=0.05, random=random)
    window.add(entry(1, 1, task=b"t", texts=texts), now=0)
    copy = entry(2, 1, task=b"t", texts=changed)
    assert window.add(copy, now=0) is Outcome.ADDED


def test_equal_completions_to_another_question_are_not_duplicates() -> None:
    texts = reasoning(Random(6))
    window = make_window()
    for number, task in enumerate([b"one", b"other"]):
        assert window.add(entry(1, number, task=task, texts=texts), now=0) is Outcome.ADDED


def test_content_digest_depends_on_completion_boundaries() -> None:
    texts = reasoning(Random(7))
    moved = [texts[0] + texts[1][0], texts[1][1:], *texts[2:]]
    one, other = (digest(task=b"t", completions=completions) for completions in (texts, moved))
    assert one.content != other.content


def test_diverse_short_answers_are_compared_but_equal_ones_are_not() -> None:
    random = Random(8)
    diverse = [words(random, 4) for _ in range(8)]
    assert near(diverse, [*diverse[1:], diverse[0]])
    assert not near(diverse, [*diverse[:6], "something else", "and another thing"])
    assert liken(["4"] * 8) == Likeness()
    assert not liken(diverse[:7]).is_remembered


@pytest.mark.parametrize("texts", [["", "", ""], ["x" * 2000, ""], ["é" * 400, "\ud800" * 200]])
def test_likeness_of_any_text_can_be_computed(texts: list[str]) -> None:
    liken(texts)
    digest(task=b"t", completions=texts)
