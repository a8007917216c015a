"""binary_matrix, whose verifier of the library evaluates the answer as Python."""

from typing import Any

from reasoning_gym.algorithmic.binary_matrix import BinaryMatrixDataset


class BinaryMatrix(BinaryMatrixDataset):
    """The library's entries; an answer is right when it shows the key's numbers row by row.

    The library gives 1 for the key's very text, as this does. It also gives 0.1 for the key as a
    Python list, which it evaluates to find out; that is worth 0 here.
    """

    category = "algorithmic"

    def score_answer(self, answer: str, entry: dict[str, Any]) -> float:
        """Return 1 for the key, however its numbers are spaced, and 0 for anything else."""
        return float(_rows(answer) == _rows(entry["answer"]))


def _rows(text: str) -> list[list[str]]:
    """Return the words of each line that has any."""
    return [words for line in text.splitlines() if (words := line.split())]
