"""Progress of downloading and loading a model, for the caller to show."""

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tqdm.std import tqdm
from transformers.utils import logging


@dataclass(frozen=True)
class LoadingProgress:
    """`done` of `total` units: bytes of a download, or tensors of a model that is being loaded."""

    work: str
    done: int
    total: int
    unit: str


OnProgress = Callable[[LoadingProgress], None]


def ignore_progress(progress: LoadingProgress) -> None:
    """Do nothing."""


def counting_bar(on_progress: OnProgress, *, work: str, unit: str) -> type[Any]:
    """Return a tqdm class for a library to use; its bars call `on_progress` instead of drawing.

    `work` and `unit` go into each `LoadingProgress`. Bars without a total do not report. If `unit`
    is `bytes`, bars that count something else do not report either.
    """

    class CountingBar(tqdm):  # type: ignore[misc]  # tqdm ships no types
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **{**kwargs, "file": io.StringIO(), "disable": False})

        def display(self, *args: Any, **kwargs: Any) -> None:
            # Of the bars of a download only those that count bytes are of interest.
            if self.total and (unit != "bytes" or self.unit == "B"):
                on_progress(LoadingProgress(work, int(self.n), int(self.total), unit))

    return CountingBar


@contextmanager
def reporting_tensors(on_progress: OnProgress) -> Iterator[None]:
    """Inside the block, call `on_progress` with the number of tensors loaded by transformers."""
    bar = counting_bar(on_progress, work="Loading", unit="tensors")
    before = logging.set_tqdm_hook(lambda factory, args, kwargs: bar(*args, **kwargs))
    try:
        yield
    finally:
        logging.set_tqdm_hook(before)
