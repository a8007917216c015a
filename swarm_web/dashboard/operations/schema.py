"""Whether the database has the tables that this version of the site requires."""

from functools import cache
from typing import NamedTuple

from django.apps import apps
from django.db import DatabaseError, InterfaceError, connection
from django.db.migrations.loader import MigrationLoader

_MIGRATED = "SELECT app, name FROM django_migrations"
_KEYED = """
    SELECT relname FROM pg_index JOIN pg_class ON pg_class.oid = indrelid
    WHERE indisprimary AND pg_table_is_visible(pg_class.oid)
"""


class _Needed(NamedTuple):
    """The last migrations of each app, as (app, name), and the tables of all models."""

    migrations: frozenset[tuple[str, str]]
    tables: frozenset[str]


def schema_fits() -> bool:
    """Return whether all migrations were applied and every table has its primary key.

    A primary key is missing while a backup is restored into the database: the restore removes the
    keys first. Migrations of a newer version are allowed, because during an update of the site they
    are applied before its new code starts. Returns False while the database is unavailable.
    """
    needed = _read_needed()
    try:
        with connection.cursor() as cursor:
            cursor.execute(_MIGRATED)
            migrated = set(cursor.fetchall())
            cursor.execute(_KEYED)
            keyed = {name for (name,) in cursor.fetchall()}
    except (DatabaseError, InterfaceError):
        return False
    return needed.migrations <= migrated and needed.tables <= keyed


@cache
def _read_needed() -> _Needed:
    """Read from the code which migrations and tables the database must have.

    Cached, because it takes 100 ms.
    """
    models = apps.get_models(include_auto_created=True)
    return _Needed(
        migrations=frozenset(MigrationLoader(None).graph.leaf_nodes()),
        tables=frozenset(model._meta.db_table for model in models if model._meta.managed),
    )
