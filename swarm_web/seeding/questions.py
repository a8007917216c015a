"""Questions and completions of the demo data, in the wording of the starter mix; no I/O.

The texts are made here, not by the datasets' generators. So the task spec that is stored with a
question does not generate this question.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

_WORDS = (
    "heron linen maple ember quiet stone river amber cloud flint grove lemon orbit pearl robin "
    "sable tiger umber vivid wheat candle dawn feather glide"
).split()
_ASIDES = (
    "Let me work this out step by step.",
    "I'll compute it directly.",
    "Wait, let me check that again.",
    "Hmm, maybe I should try another way first.",
    "Let me verify by going backwards.",
)


@dataclass(frozen=True)
class DemoQuestion:
    """A question's text, and completions that answer it: some right, some wrong."""

    prompt: str
    right: tuple[str, ...]
    wrong: tuple[str, ...]


def make_question(dataset: str, *, random: Random) -> DemoQuestion:
    """Return a question of a dataset of the starter mix, with completions."""
    prompt, answer, near = _GENERATORS[dataset](random)
    return DemoQuestion(
        prompt=prompt,
        right=tuple(_complete(answer, random=random) for _ in range(3)),
        wrong=tuple(_complete(random.choice(near), random=random) for _ in range(6)),
    )


def _complete(answer: str, *, random: Random) -> str:
    if random.random() < 0.3:
        return f"<answer>{answer}</answer>"
    asides = " ".join(random.sample(_ASIDES, random.randint(1, 2)))
    return f"<think>{asides}\nSo it should be {answer}.</think>\n<answer>{answer}</answer>"


# Prompt, right answer, and wrong answers close to it.
GeneratedTask = tuple[str, str, list[str]]


def _chain_sum(random: Random) -> GeneratedTask:
    a, b = random.randint(1, 99), random.randint(1, 99)
    operator, total = ("+", a + b) if random.random() < 0.5 else ("-", a - b)
    text = f"State the final answer to the following arithmetic problem: {a} {operator} {b} ="
    return text, str(total), _near(total)


def _products(random: Random) -> GeneratedTask:
    a, b = random.randint(2, 99), random.randint(2, 99)
    text = (
        f"Solve the following multiplication: {a} * {b}. Give only the result as your final answer."
    )
    return text, str(a * b), _near(a * b)


def _gcd(random: Random) -> GeneratedTask:
    a, b = random.randint(2, 40), random.randint(2, 40)
    text = (
        f"Find the Greatest Common Divisor (GCD) of these numbers: {a}, {b}. "
        "Give only the GCD as your final answer."
    )
    return text, str(math.gcd(a, b)), _near(math.gcd(a, b))


def _spell_backward(random: Random) -> GeneratedTask:
    word = random.choice(_WORDS)
    answer = word[::-1]
    near = [answer[1:], answer[:-1], word, answer[1] + answer[0] + answer[2:]]
    return f"Spell this word backward (example: sun -> nus): {word}", answer, near


def _near(number: int) -> list[str]:
    return [str(number + gap) for gap in (-10, -2, -1, 1, 2, 10)]


_GENERATORS: dict[str, Callable[[Random], GeneratedTask]] = {
    "chain_sum": _chain_sum,
    "products": _products,
    "gcd": _gcd,
    "spell_backward": _spell_backward,
}
