"""The memory store: the reference that every other store is compared with; nothing survives the process."""

from turnlog.storage.memory._async import AsyncMemoryRepository
from turnlog.storage.memory._sync import MemoryRepository

__all__ = ["AsyncMemoryRepository", "MemoryRepository"]
