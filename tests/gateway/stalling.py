"""A table that cannot be read for a while, so that a handler stands still in the middle."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psycopg
from django.db import connection

from tests.processes import POLL_S
from tests.sockets import PATIENCE_S

_WAITING = "SELECT pid FROM pg_locks WHERE relation = %s::regclass AND NOT granted"


class Stall:
    """A lock that a connection of its own holds on a table until `end`."""

    def __init__(self, holder: psycopg.AsyncConnection, table: str) -> None:
        self._holder, self._table = holder, table

    async def find_waiting(self) -> int:
        """Wait until somebody waits for the table, and return the process id of that backend."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                cursor = await self._holder.execute(_WAITING, [self._table])
                if found := await cursor.fetchone():
                    return int(found[0])
                await asyncio.sleep(POLL_S)

    async def cut_off(self, pid: int) -> None:
        """End a backend: who uses it loses its connection to the database."""
        await self._holder.execute("SELECT pg_terminate_backend(%s)", [pid])

    async def end(self) -> None:
        """Let those who wait go on."""
        await self._holder.rollback()


@asynccontextmanager
async def stalled(table: str) -> AsyncIterator[Stall]:
    """Keep everybody from reading and writing a table, at most until the end of the block."""
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
