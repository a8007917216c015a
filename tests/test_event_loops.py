"""Test objects that belong to an event loop."""

import asyncio
import gc
from weakref import ref

import pytest

from swarm_web.core.event_loops import one_per_loop


class Thing:
    """An object that belongs to an event loop."""


@one_per_loop
def thing() -> Thing:
    """Return the loop's object."""
    return Thing()


async def take_two() -> tuple[Thing, Thing]:
    return thing(), thing()


def test_each_loop_has_one_object_of_its_own() -> None:
    first, again = asyncio.run(take_two())
    other, _ = asyncio.run(take_two())
    assert first is again
    assert other is not first


def test_object_is_released_with_its_loop() -> None:
    async def take() -> ref[Thing]:
        return ref(thing())

    taken = asyncio.run(take())
    gc.collect()
    assert taken() is None


def test_call_without_a_loop_raises_an_error() -> None:
    with pytest.raises(RuntimeError, match="no running event loop"):
        thing()
