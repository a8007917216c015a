"""Bulk inserts with Postgres' COPY, about ten times as fast as INSERT through the ORM."""

from collections.abc import Iterable, Sequence

from django.db import connection, models
from psycopg import sql


def copy_rows(
    model: type[models.Model], columns: Sequence[str], rows: Iterable[Sequence[object]]
) -> None:
    """Append rows to a model's table in the current transaction; JSON values are given as text.

    A column missing from `columns` gets the database's default, not the model's, so name every
    column except the primary key.
    """
    statement = sql.SQL("COPY {} ({}) FROM STDIN").format(
        sql.Identifier(model._meta.db_table), sql.SQL(", ").join(map(sql.Identifier, columns))
    )
    # Computed first, so that the statement does not wait for them.
    ready = list(rows)
    with connection.cursor() as cursor, cursor.cursor.copy(statement) as copy:
        for row in ready:
            copy.write_row(row)
