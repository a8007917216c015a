import pytest

from node_client.runtime.training import is_save_due


@pytest.mark.parametrize(
    ("steps", "seconds", "due"),
    [
        (50, 60, True),
        (49, 60, False),
        (5000, 29, False),
        (1, 300, True),
        (0, 1000, False),
    ],
)
def test_checkpoints_are_neither_too_rare_nor_too_frequent(
    steps: int, seconds: float, due: bool
) -> None:
    assert is_save_due(steps=steps, seconds=seconds, save_steps=50) is due
