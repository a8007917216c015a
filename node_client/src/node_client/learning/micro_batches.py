"""Which rows of an update go through the model together."""

from collections.abc import Iterator, Sequence
from typing import Protocol, TypeVar


class Promptable(Protocol):
    """What counts of a row here: a prompt and the completion behind it, as tokens."""

    @property
    def prompt(self) -> list[int]: ...

    @property
    def completion(self) -> list[int]: ...


RowT = TypeVar("RowT", bound=Promptable)


def split_rows(
    rows: Sequence[RowT], *, limit: int, shared_prompts: bool = False
) -> Iterator[list[RowT]]:
    """Split rows into batches of at most `limit` tokens with padding (or one row), longest first.

    Rows of one prompt stay together, and rows of like length, so that little is padded or run
    twice. With `shared_prompts` a prompt counts once in each batch.
    """
    batch: list[RowT] = []
    prompts = completion_width = 0
    for row in sorted(rows, key=lambda row: (-len(row.prompt), row.prompt, -len(row.completion))):
        is_new = not (shared_prompts and batch and row.prompt == batch[-1].prompt)
        width = max(completion_width, len(row.completion))
        prompt_width = len(batch[0].prompt if batch else row.prompt)
        tokens = (prompts + is_new) * prompt_width + (len(batch) + 1) * width
        if batch and tokens > limit:
            yield batch
            batch, prompts, is_new, width = [], 0, True, len(row.completion)
        batch.append(row)
        prompts += is_new
        completion_width = width
    if batch:
        yield batch
