"""Writing many rows at once: Postgres' COPY, some ten times as fast as INSERT through the ORM."""

from collections.abc import Iterable, Sequence

from django.db import connection, models
from psycopg import sql


def copy_rows(
    model: type[models.Model], columns: Sequence[str], rows: Iterable[Sequence[object]]
) -> None:
    """Append rows to a model's table inside the current transaction; JSON goes in as text.

    Columns that are not named take the database's defaults, so name all but the key.
    """
    statement = sql.SQL("COPY {} ({}) FROM STDIN").format(
        sql.Identifier(model._meta.db_table), sql.SQL(", ").join(map(sql.Identifier, columns))
    )
    # Made beforehand, so that the database does not wait for them in the middle of a statement.
    ready = list(rows)
    with connection.cursor() as cursor, cursor.cursor.copy(statement) as copy:
        for row in ready:
            copy.write_row(row)
