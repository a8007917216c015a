"""How far a model has come on its way here: counted by who does the work, shown by others."""

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tqdm.std import tqdm
from transformers.utils import logging


@dataclass(frozen=True)
class Progress:
    """So much of a work is done: bytes of a download, or tensors of a model that is loaded."""

    work: str
    done: int
    total: int
    unit: str


Tell = Callable[[Progress], None]


def keep_quiet(progress: Progress) -> None:
    """Tell nobody."""


def counting_bar(tell: Tell, *, work: str, unit: str) -> type[Any]:
    """Return a bar for a library that counts with tqdm, which tells what it would have drawn."""

    class CountingBar(tqdm):  # type: ignore[misc]  # tqdm ships no types
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **{**kwargs, "file": io.StringIO(), "disable": False})

        def display(self, *args: Any, **kwargs: Any) -> None:
            # Of the bars of a download only those of bytes count what its owner waits for.
            if self.total and (unit != "bytes" or self.unit == "B"):
                tell(Progress(work, int(self.n), int(self.total), unit))

    return CountingBar


@contextmanager
def loading_told(tell: Tell) -> Iterator[None]:
    """Tell how many tensors of a model transformers has loaded."""
    bar = counting_bar(tell, work="Loading", unit="tensors")
    before = logging.set_tqdm_hook(lambda factory, args, kwargs: bar(*args, **kwargs))
    try:
        yield
    finally:
        logging.set_tqdm_hook(before)
