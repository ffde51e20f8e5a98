"""``AsyncSessionService``: the operations on sessions and their logs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime, timedelta
from time import monotonic
from types import TracebackType
from typing import Any, Self, TypeAlias

from msgspec import UNSET, UnsetType

from turnlog.compaction.plan import CompactionResult, Strategy
from turnlog.compaction.triggers import Trigger, always
from turnlog.errors import SessionAlreadyExistsError, SessionBusyError, SessionNotFoundError, VersionConflictError
from turnlog.log.event_filter import ANY_BRANCH, EventFilter
from turnlog.log.events import SessionEvent
from turnlog.log.messages import Message, SystemMessage
from turnlog.log.names import new_id
from turnlog.log.queries import EventQuery, SearchPage
from turnlog.log.session import Session
from turnlog.service import arguments, boundaries
from turnlog.service._async import views
from turnlog.service._async.compacting import AsyncCompactor
from turnlog.storage.changes import SessionChange
from turnlog.storage.opening import open_async_store
from turnlog.storage.protocol import (
    DEFAULT_PAGE,
    EVERYTHING,
    AppendResult,
    AsyncSessionRepository,
    EventList,
    SessionPage,
    Turn,
)

_ALWAYS = always()

Messages: TypeAlias = list[Message]

#: Between two looks at a busy session: short at first, then a quarter of a second.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.01, 0.25
#: A log that moves under clear or rewind is read again until the wait is over, and so often however short the wait is.
_FEWEST_ATTEMPTS = 20


class AsyncSessionService:
    """What an application calls. It holds no state of a session: the next call may come from another process.

    ``default_time_to_live`` makes new sessions slide (R-7); without it they never expire. Appends of messages,
    ``clear`` and ``rewind`` wait up to ``turn_wait`` for a turn that somebody else holds (H-11). Closing the service
    closes its store.
    """

    def __init__(
        self,
        repository: AsyncSessionRepository,
        *,
        allow_system_messages: bool = False,
        default_time_to_live: timedelta | None = None,
        turn_wait: timedelta = arguments.DEFAULT_TURN_WAIT,
    ) -> None:
        arguments.check_options(default_time_to_live, turn_wait)
        self._repository = repository
        self._allow_system_messages = allow_system_messages
        self._default_time_to_live = default_time_to_live
        self._turn_wait = turn_wait
        self._compactor = AsyncCompactor(repository)

    @classmethod
    def open(
        cls,
        url: str,
        *,
        allow_system_messages: bool = False,
        default_time_to_live: timedelta | None = None,
        turn_wait: timedelta = arguments.DEFAULT_TURN_WAIT,
    ) -> Self:
        """A service on the store at ``url``; the options are the constructor's. A store's are for ``open_store``."""
        arguments.check_options(default_time_to_live, turn_wait)
        return cls(
            open_async_store(url),
            allow_system_messages=allow_system_messages,
            default_time_to_live=default_time_to_live,
            turn_wait=turn_wait,
        )

    @property
    def repository(self) -> AsyncSessionRepository:
        """The store."""
        return self._repository

    @property
    def turn_wait(self) -> timedelta:
        """How long a write waits for a turn that somebody else holds (H-11)."""
        return self._turn_wait

    async def create(
        self,
        session_id: str | None = None,
        *,
        principal: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        expires_at: datetime | None = None,
        time_to_live: timedelta | UnsetType | None = UNSET,
    ) -> Session:
        """Make a session; its id is a new UUIDv7 unless given.

        ``SessionAlreadyExistsError`` leaves the session that has the id untouched (R-2). ``time_to_live`` slides with
        every append, ``expires_at`` alone is fixed; ``time_to_live=None`` overrides the service's default.
        """
        session = arguments.new_session(
            self._repository.clock(),
            session_id,
            principal=principal,
            metadata=metadata,
            expires_at=expires_at,
            time_to_live=time_to_live,
            default_time_to_live=self._default_time_to_live,
        )
        return await self._repository.create(session)

    async def find(self, session_id: str) -> Session | None:
        """The session, or None where there is none or it has expired."""
        return await self._repository.find(session_id)

    async def find_or_create(
        self,
        session_id: str,
        *,
        principal: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        expires_at: datetime | None = None,
        time_to_live: timedelta | UnsetType | None = UNSET,
    ) -> Session:
        """The session, made as ``create`` makes it if it is not there; if it is, the other arguments change nothing."""
        while True:
            found = await self._repository.find(session_id)
            if found is not None:
                return found
            try:
                return await self.create(
                    session_id,
                    principal=principal,
                    metadata=metadata,
                    expires_at=expires_at,
                    time_to_live=time_to_live,
                )
            except SessionAlreadyExistsError:
                continue  # somebody else was first; it may even have gone again since

    async def list(
        self,
        *,
        principal: str | None = None,
        limit: int = DEFAULT_PAGE,
        cursor: str | None = None,
        newest_first: bool = False,
    ) -> SessionPage:
        """One page of all sessions, or of one principal's, in the order they were made."""
        return await self._repository.list(principal=principal, limit=limit, cursor=cursor, newest_first=newest_first)

    async def find_by_metadata(
        self, name: str, value: str, *, limit: int = DEFAULT_PAGE, cursor: str | None = None, newest_first: bool = False
    ) -> SessionPage:
        """One page of the sessions with ``value`` under the indexed metadata key ``name`` (V-2)."""
        return await self._repository.find_by_metadata(
            name, value, limit=limit, cursor=cursor, newest_first=newest_first
        )

    async def update(
        self,
        session_id: str,
        *,
        metadata: Mapping[str, Any] | UnsetType = UNSET,
        set: Mapping[str, Any] | None = None,
        unset: Sequence[str] = (),
        principal: str | UnsetType | None = UNSET,
        expires_at: datetime | UnsetType | None = UNSET,
        time_to_live: timedelta | UnsetType | None = UNSET,
    ) -> Session:
        """Change metadata or expiry, atomically; see :class:`SessionChange` for what each argument means."""
        change = SessionChange(
            metadata=metadata,
            set=set or {},
            unset=unset,
            principal=principal,
            expires_at=expires_at,
            time_to_live=time_to_live,
        )
        return await self._repository.update(session_id, change)

    async def append(
        self,
        session_id: str,
        events: SessionEvent | Sequence[SessionEvent],
        *,
        expected_version: int | None = None,
        turn: Turn | None = None,
    ) -> AppendResult:
        """Append one event or one batch: all or none, in order; appending the same ids again is a replay (R-3, R-4).

        Waits while somebody else holds the session's turn, then raises ``SessionBusyError`` (H-11).
        """
        batch = (events,) if isinstance(events, SessionEvent) else tuple(events)
        for event in batch:
            arguments.check_appendable(event, allow_system_messages=self._allow_system_messages)
        return await self._append_when_free(session_id, batch, expected_version, turn)

    async def append_message(
        self,
        session_id: str,
        message: Message,
        *,
        event_id: str | None = None,
        branch: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        expected_version: int | None = None,
        turn: Turn | None = None,
    ) -> SessionEvent:
        """Wrap a message into an event, append it, and return the event as stored."""
        event = SessionEvent(
            id=new_id() if event_id is None else event_id,
            session_id=session_id,
            message=message,
            branch=branch,
            metadata=dict(metadata or {}),
            timestamp=self._repository.clock(),
        )
        result = await self.append(session_id, event, expected_version=expected_version, turn=turn)
        return result.events[0]

    async def events(
        self,
        session_id: str,
        filter: EventFilter = EVERYTHING,
        *,
        as_of: int | None = None,
        missing_ok: bool = False,
    ) -> EventList:
        """What the filter selects, in the order read; at version ``as_of`` if given (A-3).

        An unknown session is an error unless ``missing_ok``: a mistyped id is no empty conversation (R-5).
        """
        found = await self._repository.events(session_id, filter, as_of=as_of)
        if not found and not missing_ok:
            await self._require(session_id)
        return found

    async def iter_events(
        self, session_id: str, filter: EventFilter = EVERYTHING, *, as_of: int | None = None, missing_ok: bool = False
    ) -> AsyncIterator[SessionEvent]:
        """The same events one by one, read in bounded steps; events appended meanwhile are not seen."""
        if not missing_ok:
            await self._require(session_id)
        async for batch in self._repository.iter_events(session_id, filter, as_of=as_of):
            for event in batch:
                yield event

    async def active_messages(
        self,
        session_id: str,
        filter: EventFilter | None = None,
        *,
        as_of: int | None = None,
        missing_ok: bool = False,
    ) -> Messages:
        """The messages of the active view: the context of a model.

        Of the stored system messages only one is given, first: the latest that the filter's branch sees, or, where it
        names none, the latest in sight of the base branch (C-5). Nothing else in the filter hides it; the rest is what
        the filter, merged with the view, selects.
        """
        chosen = EventFilter.active() if filter is None else filter.merge(EventFilter.active())
        found = await self.events(session_id, chosen, as_of=as_of, missing_ok=missing_ok)
        view = found
        if filter is not None:
            view = await self._repository.events(session_id, boundaries.SYSTEM_MESSAGES, as_of=as_of)
        branch = ANY_BRANCH if filter is None else filter.branch
        system = await views.system_in_force(self._repository, session_id, view, branch)
        others = [event.content for event in found if not isinstance(event.message, SystemMessage)]
        return others if system is None else [system.content, *others]

    async def search(self, session_id: str, query: EventQuery | str) -> SearchPage:
        """One page of literal hits over everything ever said, covered events included, oldest first (S-1)."""
        await self._require(session_id)
        wanted = EventQuery.keyword(query) if isinstance(query, str) else query
        return await self._repository.search(session_id, wanted)

    async def version(self, session_id: str, *, missing_ok: bool = False) -> int:
        """The position of the last event; 0 for an empty log (V-7)."""
        version = await self._repository.version(session_id)
        if not version and not missing_ok:
            await self._require(session_id)
        return version

    async def expand(self, session_id: str, event: SessionEvent | str) -> EventList:
        """The message events that a boundary covers, in the order of the view it replaced (A-2, A-3).

        ``event`` is the boundary, an event of its summary, or the id of one of them.
        """
        await self._require(session_id)
        event_id = event.id if isinstance(event, SessionEvent) else event
        return await views.covered_by(self._repository, session_id, event_id)

    async def clear(self, session_id: str) -> SessionEvent:
        """Empty the view, but for the stored system message; the log stays (A-5). Returns the boundary."""
        return await self._replace_view(session_id, "clear", None)

    async def rewind(self, session_id: str, version: int) -> SessionEvent:
        """Make the view what it was at ``version``; the log stays (A-5). Returns the boundary.

        A version inside a batch counts as the one before it, one inside a turn goes to the turn's start.
        """
        return await self._replace_view(session_id, "rewind", arguments.check_version(version))

    async def _replace_view(self, session_id: str, strategy: str, target: int | None) -> SessionEvent:
        """Append the boundary that the newest version asks for; a log that moves meanwhile is read again."""
        deadline, attempts = self._deadline(), 0
        while True:
            attempts += 1
            newest = await self.version(session_id)
            event = await views.boundary_for(self._repository, session_id, strategy, target, newest)
            try:
                result = await self._append_when_free(session_id, (event,), newest, None)
            except VersionConflictError:
                if attempts >= _FEWEST_ATTEMPTS and monotonic() > deadline:
                    raise
            else:
                return result.events[0]

    async def _append_when_free(
        self, session_id: str, batch: tuple[SessionEvent, ...], expected_version: int | None, turn: Turn | None
    ) -> AppendResult:
        deadline, pause = self._deadline(), _FIRST_PAUSE
        while True:
            try:
                return await self._repository.append(session_id, batch, expected_version=expected_version, turn=turn)
            except SessionBusyError:
                if monotonic() + pause > deadline:
                    raise
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    def _deadline(self) -> float:
        return monotonic() + self._turn_wait.total_seconds()

    async def compact(
        self, session_id: str, strategy: Strategy, *, trigger: Trigger = _ALWAYS, dry_run: bool = False
    ) -> CompactionResult:
        """Shrink the view if ``trigger`` fires on it: one boundary, and a summary if the strategy makes one (C-1).

        Nothing is deleted: ``expand`` returns what the boundary covers. A summary that fails, is blank, or does not
        shrink the view changes nothing; the result says why, and the attempt is not repeated until the view has grown
        by a fifth (C-6). What is appended meanwhile stays in the view (C-7). Store errors are raised. ``dry_run``
        decides and writes nothing.
        """
        return await self._compactor.compact(session_id, strategy, trigger, dry_run=dry_run)

    async def fork(
        self,
        session_id: str,
        new_session_id: str | None = None,
        *,
        at: int | None = None,
    ) -> Session:
        """Copy the log up to version ``at`` into a new session, which names its source in its metadata (A-5)."""
        source = await self._require(session_id)
        target = arguments.fork_of(source, self._repository.clock(), new_session_id)
        await self._repository.fork(session_id, target, at=at)
        return target

    async def delete(self, session_id: str) -> bool:
        """Remove a session and its log for good; False when there was none."""
        return await self._repository.delete(session_id)

    async def delete_expired(self, before: datetime | None = None, *, batch_size: int = 100) -> int:
        """Remove sessions that have expired (at or before ``before``, by default now); returns how many (R-7)."""
        end = self._repository.clock() if before is None else before
        return await self._repository.delete_expired(end, batch_size=batch_size)

    async def _require(self, session_id: str) -> Session:
        session = await self._repository.find(session_id)
        if session is None:
            raise SessionNotFoundError(session_id)
        return session

    async def close(self) -> None:
        """Close the store."""
        await self._repository.close()

    async def __aenter__(self) -> Self:
        await self._repository.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()
