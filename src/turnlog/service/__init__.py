"""Use cases: what an application does with sessions, over any store."""

from turnlog.service._async.service import AsyncSessionService
from turnlog.service._sync.service import SessionService

__all__ = ["AsyncSessionService", "SessionService"]
