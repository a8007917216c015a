"""What an optimizer keeps of each parameter: made for all of them, or for none.

torch and bitsandbytes enter a parameter's count of steps first, and allocate its averages then. If
memory runs out in between, a second attempt would take the count for a whole state.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch


@contextmanager
def whole_states(optimizer: torch.optim.Optimizer) -> Iterator[None]:
    """Take back all states that a step began when memory runs out in it.

    That is right where all are made before the first parameter is changed, as torch's AdamW and
    `HalvesAdamW` do; others need `make_states_first`.
    """
    made = {parameter for parameter, state in optimizer.state.items() if state}
    try:
        yield
    except (RuntimeError, MemoryError):
        for parameter in [each for each in optimizer.state if each not in made]:
            del optimizer.state[parameter]
        raise


def make_states_first(optimizer: torch.optim.Optimizer) -> None:
    """Let an optimizer of bitsandbytes make all states before it changes the first parameter.

    By itself it makes a state and changes its parameter, one after the other: a step that lacks
    memory in the middle would be made twice for those in front.
    """
    optimizer.register_step_pre_hook(_make_states)


def _make_states(optimizer: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
    for place, group in enumerate(optimizer.param_groups):
        for number, parameter in enumerate(group["params"]):
            if parameter.grad is not None and not optimizer.state[parameter]:
                optimizer.init_state(group, parameter, place, number)
