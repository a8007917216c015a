"""Test that long tables are read in batches, each sent before the next one is read."""

from collections.abc import Iterator, Sequence

from swarm_web.dashboard.downloads.batches import read_batches, stream
from swarm_web.dashboard.downloads.formats import Row


def read_tens(some: Sequence[int]) -> list[Row]:
    """Return ten rows for each key."""
    return [(key, place) for key in some for place in range(10)]


def test_batches_contain_all_rows_in_order() -> None:
    batches = list(read_batches(range(100), read_tens, size=50))
    assert [row for batch in batches for row in batch] == read_tens(range(100))


def test_batches_grow_to_the_requested_size() -> None:
    assert [len(batch) for batch in read_batches(range(23), read_tens, size=50)] == [
        *(10, 40, 50, 50, 50),
        30,
    ]


def test_keys_without_rows_are_read_in_few_batches() -> None:
    assert len(list(read_batches(range(5_000), lambda _: []))) < 20


async def test_part_is_sent_before_the_next_one_is_produced() -> None:
    made: list[bytes] = []

    def parts() -> Iterator[bytes]:
        for part in (b"one", b"", b"two"):
            made.append(part)
            yield part

    sent = stream(parts())
    assert await anext(sent) == b"one"
    assert made == [b"one"]
    assert [part async for part in sent] == [b"two"]
