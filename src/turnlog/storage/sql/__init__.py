"""SQL stores: one set of plans for all dialects and both colours; the drivers differ."""

from turnlog.storage.sql._async import AsyncSqlRepository
from turnlog.storage.sql._sync import SqlRepository

__all__ = ["AsyncSqlRepository", "SqlRepository"]
