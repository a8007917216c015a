"""The dataset binary_matrix, with a verifier that compares answers as text.

The library's verifier evaluates the answer as Python.
"""

from typing import Any

from reasoning_gym.algorithmic.binary_matrix import BinaryMatrixDataset


class BinaryMatrix(BinaryMatrixDataset):
    """The library's dataset; an answer is right if it has the right numbers in the right rows.

    The library also gives 0.1 for a Python list of the right numbers, which it has to evaluate;
    such a list scores 0 here.
    """

    category = "algorithmic"

    def score_answer(self, answer: str, entry: dict[str, Any]) -> float:
        """Return 1 if the answer has the right numbers in the right rows, else 0.

        Numbers are separated by any amount of white space; blank lines do not count.
        """
        return float(_rows(answer) == _rows(entry["answer"]))


def _rows(text: str) -> list[list[str]]:
    """Return the words of each line that is not blank."""
    return [words for line in text.splitlines() if (words := line.split())]
