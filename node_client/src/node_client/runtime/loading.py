"""What an owner sees while a model comes: figures beside the spinner, or a line every few seconds.

Figures are those of the libraries that do the work, and come when they count. Without a terminal a
download is told of at once, and loading only where it takes long.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

from rich.console import Console
from rich.text import Text

from node_client.display.figures import describe_bytes
from node_client.display.terminal import fold_line
from node_client.model.loading.progress import LoadingProgress, OnProgress

LINE_EVERY_S = 5.0

log = logging.getLogger(__name__)


@contextmanager
def loading_shown(model: str, *, console: Console) -> Iterator[OnProgress]:
    """Show how far a model has come, as the one who is told of it."""
    wait = f"Loading the model {fold_line(model)}"
    told_at = {"tensors": monotonic()}

    with console.status(Text(wait)) as status:

        def tell(progress: LoadingProgress) -> None:
            words = describe_progress(progress)
            if console.is_terminal:
                status.update(Text(f"{wait}. {words}"))
            elif monotonic() - told_at.get(progress.unit, -LINE_EVERY_S) >= LINE_EVERY_S:
                told_at[progress.unit] = monotonic()
                log.info("%s", words)

        yield tell


def describe_progress(progress: LoadingProgress) -> str:
    """Say how far a work is."""
    if progress.unit == "bytes":
        done, total = describe_bytes(progress.done), describe_bytes(progress.total)
        return f"{progress.work}: {done} of {total}"
    return f"{progress.work}: {progress.done:,} of {progress.total:,} {progress.unit}"
