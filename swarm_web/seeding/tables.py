"""Bulk inserts into Postgres tables, without their constraints and indexes."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from django.db import connection, models
from psycopg import sql

_CONSTRAINTS = """
    SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint
    WHERE conrelid = %s::regclass AND contype IN ('f', 'u', 'c') ORDER BY contype DESC, conname
"""
_INDEXES = """
    SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid) FROM pg_index
    WHERE indrelid = %s::regclass AND NOT indisprimary
    AND indexrelid NOT IN (SELECT conindid FROM pg_constraint WHERE conrelid = %s::regclass)
"""


@contextmanager
def without_constraints(tables: Sequence[type[models.Model]]) -> Iterator[None]:
    """Drop the tables' constraints and indexes, and create them again after the `with` block.

    Primary keys are kept. Creating an index once is several times as fast as updating it for
    millions of rows.

    Use it in a transaction. Other connections then never see the tables in this state, and if the
    block fails, the rollback restores the constraints and indexes. Raises IntegrityError at the end
    if the new rows violate a constraint.
    """
    names = [table._meta.db_table for table in tables]
    remade = [statement for name in names for statement in _drop_constraints(name)]
    yield
    with connection.cursor() as cursor:
        for statement in remade:
            cursor.execute(statement)


def _drop_constraints(table: str) -> list[sql.Composable]:
    """Drop a table's constraints and indexes; return the statements that create them."""
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute(_INDEXES, [table, table])
        indexes = cursor.fetchall()
        cursor.execute(_CONSTRAINTS, [table])
        constraints = cursor.fetchall()
        for name, _ in constraints:
            drop = sql.SQL("ALTER TABLE {} DROP CONSTRAINT {}")
            cursor.execute(drop.format(sql.Identifier(table), sql.Identifier(name)))
        for name, _ in indexes:
            cursor.execute(sql.SQL("DROP INDEX {}").format(sql.SQL(name)))
    add = sql.SQL("ALTER TABLE {} ADD CONSTRAINT {} {}")
    return [
        *(sql.SQL(definition) for _, definition in indexes),
        *(
            add.format(sql.Identifier(table), sql.Identifier(name), sql.SQL(definition))
            for name, definition in constraints
        ),
    ]
