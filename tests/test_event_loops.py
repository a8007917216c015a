"""Test objects that belong to an event loop."""

import asyncio
import gc
from weakref import ref

import pytest

from swarm_web.core.event_loops import end_task, one_per_loop


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


async def test_a_task_that_loses_a_cancellation_is_ended() -> None:
    lost = 0

    async def run() -> None:
        nonlocal lost
        while True:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                if lost == 2:
                    raise
                lost += 1

    task = asyncio.create_task(run())
    await asyncio.sleep(0)
    await end_task(task)
    assert (lost, task.cancelled()) == (2, True)


async def test_a_task_that_has_failed_is_left_as_it_is() -> None:
    async def fail() -> None:
        raise ValueError

    task = asyncio.create_task(fail())
    await asyncio.wait([task])
    await end_task(task)
    assert isinstance(task.exception(), ValueError)
