"""A locked table, so that a handler blocks halfway."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psycopg
from django.db import connection

from tests.processes import POLL_S
from tests.sockets import PATIENCE_S

_WAITING = "SELECT pid FROM pg_locks WHERE relation = %s::regclass AND NOT granted"


class Stall:
    """A lock on a table, held by a separate connection until `end`."""

    def __init__(self, holder: psycopg.AsyncConnection, table: str) -> None:
        self._holder, self._table = holder, table

    async def find_waiting(self) -> int:
        """Wait until a backend waits for the table, and return its process id."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                cursor = await self._holder.execute(_WAITING, [self._table])
                if found := await cursor.fetchone():
                    return int(found[0])
                await asyncio.sleep(POLL_S)

    async def terminate(self, pid: int) -> None:
        """Terminate a backend, so that its client loses its database connection."""
        await self._holder.execute("SELECT pg_terminate_backend(%s)", [pid])

    async def end(self) -> None:
        """Release the lock."""
        await self._holder.rollback()


@asynccontextmanager
async def stalled(table: str) -> AsyncIterator[Stall]:
    """Block reads and writes of a table, at most until the end of the block."""
    database = connection.settings_dict
    holder = await psycopg.AsyncConnection.connect(
        dbname=database["NAME"],
        user=database["USER"],
        password=database["PASSWORD"],
        host=database["HOST"],
        port=database["PORT"],
    )
    async with holder:
        await holder.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
        try:
            yield Stall(holder, table)
        finally:
            await holder.rollback()
