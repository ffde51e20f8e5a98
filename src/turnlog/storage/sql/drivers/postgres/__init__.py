"""PostgreSQL through psycopg 3; needs the ``postgres`` extra."""

from turnlog.errors import MissingExtraError

try:
    from turnlog.storage.sql.drivers.postgres._async import AsyncPostgresDriver
    from turnlog.storage.sql.drivers.postgres._sync import PostgresDriver
except ModuleNotFoundError as error:
    raise MissingExtraError("postgres", "psycopg") from error

from turnlog.storage.sql.drivers.postgres.options import PostgresOptions, options_of

__all__ = ["AsyncPostgresDriver", "PostgresDriver", "PostgresOptions", "options_of"]
