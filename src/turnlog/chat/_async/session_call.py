"""One call on its session: the turn it holds, what it has stored, and the history before it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Final, Self, TypeAlias

from turnlog.chat import runs
from turnlog.chat.colours import shielded
from turnlog.chat.context import CallContext, private_key
from turnlog.chat.event_ids import RunEvents
from turnlog.chat.guard import CAUSES, guarded
from turnlog.chat.heartbeat import AsyncHeartbeat
from turnlog.chat.holding import ACTIVE, ActiveCall, AsyncPlace, HeldTurn, Patience
from turnlog.chat.prompt import RequestParts, carried_of, not_carried, overlap, system_messages
from turnlog.errors import (
    AppendOutcomeUnknownError,
    PrincipalMismatchError,
    RunSupersededError,
    SessionBusyError,
    StoreError,
    TurnInterruptedError,
    VersionConflictError,
)
from turnlog.log.event_filter import ANY_BRANCH, EventFilter
from turnlog.log.events import SessionEvent
from turnlog.log.messages import Message, MessageType, SystemMessage
from turnlog.log.names import branch_chain, new_id
from turnlog.log.windows import Window
from turnlog.service import AsyncSessionService, boundaries
from turnlog.service._async.views import system_in_force
from turnlog.storage.protocol import AppendResult, EventList, Turn

_log: Final = logging.getLogger("turnlog.chat")
#: Positions that a warning names.
_MOST_NAMED: Final = 20
#: The share of a lease after which it is renewed.
_BEAT: Final = 1 / 3
_NEWEST_USER: Final = EventFilter(
    message_types={MessageType.USER}, exclude_synthetic=True, window=Window.last(1, whole_turns=False)
)
#: Who speaks in a conversation: a stored system message is no part of it.
_SPOKEN: Final = (MessageType.USER, MessageType.ASSISTANT, MessageType.TOOL)

#: A filter, the positions that a request carries itself (None: all), and what it holds directly behind the history.
_HistoryKey: TypeAlias = tuple[EventFilter, frozenset[int] | None, tuple[Message, ...]]


def _key(service: AsyncSessionService) -> str:
    """A call may be kept in several stores at once, each by advisors of its own."""
    return private_key(f"session_call_{id(service)}")


class AsyncSessionCall:
    """What the session advisors share during one call; entered by each, it ends when the first of them leaves."""

    def __init__(self, service: AsyncSessionService, context: dict[str, Any]) -> None:
        self.service = service
        self.repository = service.repository
        self._context = context
        self._depth = 0
        #: The version behind which the run begins; None before the turn is taken. History is what lies up to there.
        self._before: int | None = None
        self._taken_at: int | None = None
        self._histories: dict[_HistoryKey, tuple[SystemMessage | None, tuple[Message, ...]]] = {}
        #: The messages of this run that are stored, in order, and the ids of their events.
        self.stored: list[Message] = []
        self.stored_ids: list[str] = []

    @classmethod
    def of(cls, service: AsyncSessionService, context: dict[str, Any]) -> AsyncSessionCall:
        """The one of this call, made by whoever asks first."""
        key = _key(service)
        call = context.get(key)
        if not isinstance(call, AsyncSessionCall):
            context[key] = call = AsyncSessionCall(service, context)
        return call

    async def __aenter__(self) -> Self:
        if not self._depth:
            await self._open()
        self._depth += 1
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._depth -= 1
        if not self._depth:
            self._context.pop(_key(self.service), None)
            ACTIVE.reset(self._active)
            _ = await shielded(self._close())

    async def _open(self) -> None:
        asked = CallContext(self._context)
        self.session_id = asked.session_id
        self.branch = asked.branch
        self.call_filter = asked.event_filter
        self._turn_asked = asked.turn
        await self._find_or_create(asked)
        self.is_known_run = asked.run_id is not None
        self.run_id = asked.run_id or new_id()
        self._events = RunEvents(self.session_id, self.run_id, self.branch, self.repository.clock)
        await self._join_or_begin()

    async def _find_or_create(self, asked: CallContext) -> None:
        principal, metadata = asked.principal, asked.session_metadata
        session = await self.service.find(self.session_id)
        if session is None:
            session = await self.service.find_or_create(self.session_id, principal=principal, metadata=metadata)
        if principal is not None and session.principal != principal:
            raise PrincipalMismatchError(self.session_id, principal)

    async def _join_or_begin(self) -> None:
        """Become part of a turn that a caller of ours holds, or begin one; the store hears of it with the first append.

        Both wait until they are alone: on the session, or within a turn on their branch (H-12).
        """
        caller = ACTIVE.get()
        joined = None if caller is None else caller.joined_by(self.repository, self.session_id, self.branch)
        if joined is None and self._turn_asked is not None:
            joined = await self._asked_turn(self._turn_asked)
        self.owns_turn = joined is None
        self.turn = joined or HeldTurn(self.repository, self.session_id, new_id())
        self._may_hold = False
        self._heartbeat: AsyncHeartbeat | None = None
        await self._enter_places()
        self._active = ACTIVE.set(ActiveCall(self.turn, self.branch, caller))

    async def _enter_places(self) -> None:
        """Be alone on the branch within the turn, and first, with a turn of our own, on the session."""
        seconds = self.service.turn_wait.total_seconds()
        wanted: list[tuple[str | None, str | None]] = [(None, None)] if self.owns_turn else []
        self._places: list[AsyncPlace] = []
        for branch, token in (*wanted, (self.branch, self.turn.token)):
            place = AsyncPlace(self.repository, self.session_id, branch, token, seconds)
            await place.enter()
            self._places.append(place)

    async def _asked_turn(self, token: str) -> HeldTurn | None:
        """The turn of another process; None if it is over, and a turn of our own begins."""
        try:
            await self.repository.renew_turn(self.session_id, Turn(token))
        except TurnInterruptedError:
            return None
        turn = HeldTurn(self.repository, self.session_id, token)
        turn.is_taken = True
        return turn

    async def _close(self) -> bool:
        """Give back what is held; whether nothing is left of it in the store."""
        try:
            if self._heartbeat is not None:
                await self._heartbeat.stop()
            if self.owns_turn:
                self.turn.is_over = True
                if self.turn.is_taken or self._may_hold:
                    return await self._release()
            return True
        finally:
            for place in self._places:
                await place.leave()

    async def _release(self) -> bool:
        try:
            return await self.repository.release_turn(self.session_id, self.turn.token)
        except StoreError as error:
            # What the call has done stands; the turn is free when its lease has run out.
            _log.warning("session %r: its turn was not given back: %s", self.session_id, error)
            return False

    @property
    def is_begun(self) -> bool:
        """Whether the turn has been taken by this call."""
        return self._before is not None

    async def take(self, events: Sequence[SessionEvent] = ()) -> None:
        """Take the turn, with the run's first events where there are any; wait while somebody else holds it (H-11)."""
        patience = Patience(self.service.turn_wait.total_seconds())
        while self._before is None:
            try:
                _ = await shielded(self._take(events))
            except VersionConflictError:
                continue  # the log has moved since we looked: look again
            except SessionBusyError:
                pause = patience.next_pause()
                if pause is None:
                    raise
                await asyncio.sleep(pause)

    async def _take(self, events: Sequence[SessionEvent]) -> int:
        """Take the turn, or raise; the version before it."""
        turn = Turn(self.turn.token, take=True)
        try:
            if events:
                version = await self.repository.version(self.session_id)
                _ = await self._append(events, None if self.turn.is_taken else version, turn)
            else:
                version = await self.repository.take_turn(self.session_id, turn)
        except (StoreError, AppendOutcomeUnknownError):
            self._may_hold = True  # the answer may be lost, and the turn ours
            raise
        self._before = version
        is_first, self.turn.is_taken = not self.turn.is_taken, True
        if self._heartbeat is None and (self.owns_turn or is_first):
            self._heartbeat = AsyncHeartbeat(self._renew, turn.lease.total_seconds() * _BEAT)
        return version

    async def _renew(self) -> None:
        await self.repository.renew_turn(self.session_id, Turn(self.turn.token))

    async def _append(self, events: Sequence[SessionEvent], expected_version: int | None, turn: Turn) -> AppendResult:
        """Append; an unknown outcome is settled by doing it again, which the ids make safe (R-14)."""
        try:
            return await self.repository.append(self.session_id, events, expected_version=expected_version, turn=turn)
        except AppendOutcomeUnknownError:
            return await self.repository.append(self.session_id, events, turn=turn)

    async def store(self, messages: Sequence[Message], metadata: dict[str, Any] | None = None) -> list[str]:
        """Store these messages of the run, all or none, and return the ids of their events.

        ``metadata`` goes to the last event. A turn that is not held yet is taken with it.
        """
        if not messages:
            return []
        events = self._events.events(messages)
        if metadata:
            events = (*events[:-1], events[-1].replace(metadata=events[-1].metadata | metadata))
        if self._before is None:
            await self.take(events)
        else:
            _ = await shielded(self._append(events, None, Turn(self.turn.token)))
        self._events.stored(events)
        self._note(events)
        return [event.id for event in events]

    def _note(self, events: Sequence[SessionEvent]) -> None:
        self.stored += [event.content for event in events]
        self.stored_ids += [event.id for event in events]

    async def resume(self) -> EventList:
        """Take the turn, and go on behind what is stored of the run that the caller has named (H-8)."""
        await self.take()
        self._taken_at = self._before
        found = await self.repository.find_events(self.session_id, run_id=self.run_id)
        events = [event for event in found if event.branch == self.branch]
        if events:
            self._before = (events[0].position or 1) - 1
            self._events.stored(events)
            self._note([event for event in events if not event.metadata.get(runs.INTERRUPTED)])
        return events

    async def earlier(self, opening: Sequence[Message]) -> runs.EarlierRun | None:
        """What is stored of the run that the caller has named; None where that is nothing."""
        events = await self.resume()
        run = runs.earlier_run(events)
        if run is None:
            return None
        runs.check_opening(run, self.session_id, self.run_id, opening)
        if run.outcome is None and await self._is_superseded(events):
            raise RunSupersededError(self.session_id, self.run_id)
        return run

    def begin_run(self) -> None:
        """Behind the run that was found, begin another in the turn that is held."""
        self.run_id = new_id()
        self._events = RunEvents(self.session_id, self.run_id, self.branch, self.repository.clock)
        self._before = self._taken_at
        self.stored, self.stored_ids = [], []

    async def _is_superseded(self, events: EventList) -> bool:
        """Whether a newer turn has begun, or the run's events have left the view."""
        first, last = events[0].position or 0, events[-1].position or 0
        newest = await self.repository.events(self.session_id, _NEWEST_USER.replace(branch=self.branch))
        if newest and (newest[0].position or 0) > first and newest[0].run_id != self.run_id:
            return True
        view = EventFilter.active().replace(branch=self.branch, after=first - 1, before=last + 1)
        kept = {event.id for event in await self.repository.events(self.session_id, view)}
        return any(event.id not in kept for event in events)

    async def history(
        self, parts: RequestParts, event_filter: EventFilter, run_before: int
    ) -> tuple[tuple[SystemMessage, ...], tuple[Message, ...]]:
        """The system messages of a prompt, and the stored messages that the request does not carry.

        ``run_before`` is how many messages of the run were stored before the request's trailing ones. These are given
        whole; what lies before the run goes through the filter and the guard.
        """
        chosen = self._filter(event_filter)
        carried = await self._carried(parts.before, run_before)
        behind = parts.trailing if parts.is_behind_tools and not (parts.before or run_before) else ()
        key = (chosen, carried, behind)
        if key not in self._histories:
            # It never changes, so it is read, and warned of, once.
            self._histories[key] = await self._read_history(chosen, carried, behind)
        system, messages = self._histories[key]
        return system_messages(system, parts.systems), (*messages, *not_carried(self.stored[:run_before], parts.before))

    async def _carried(self, before: Sequence[Message], run_before: int) -> frozenset[int] | None:
        """The positions before the run that the request carries itself; None: it brings its own history."""
        if len(before) <= run_before:
            return frozenset()
        tail = await self._tail(len(before) - run_before)
        stored = [*(event.content for event in tail), *self.stored[:run_before]]
        reach = carried_of(len(tail), run_before, overlap(stored, before), len(before))
        if reach is None:
            return None
        return frozenset(event.position or 0 for event in tail[len(tail) - reach :])

    def _filter(self, event_filter: EventFilter) -> EventFilter:
        chosen = event_filter if self.call_filter is None else event_filter.merge(self.call_filter)
        chosen = chosen.merge(EventFilter.active())
        return chosen.replace(branch=self.branch) if chosen.branch is ANY_BRANCH else chosen

    async def _read_history(
        self, chosen: EventFilter, carried: frozenset[int] | None, behind: Sequence[Message]
    ) -> tuple[SystemMessage | None, tuple[Message, ...]]:
        if not self._before:
            return None, ()
        system = await self._system_in_force(chosen)
        if carried is None:
            return system, ()
        events = await self.repository.events(self.session_id, chosen, as_of=self._before)
        history = guarded(
            [
                event
                for event in events
                if event.position not in carried and not isinstance(event.message, SystemMessage)
            ],
            self._is_expected,
            behind,
        )
        if history.left_out:
            self._warn(history.left_out)
        return system, history.messages

    async def _system_in_force(self, chosen: EventFilter) -> SystemMessage | None:
        """The latest stored one, whatever the filter hides."""
        systems = await self.repository.events(self.session_id, boundaries.SYSTEM_MESSAGES, as_of=self._before)
        in_force = await system_in_force(self.repository, self.session_id, systems, chosen.branch)
        message = None if in_force is None else in_force.message
        return message if isinstance(message, SystemMessage) else None

    def _warn(self, left_out: Sequence[int]) -> None:
        places = ", ".join(map(str, left_out[:_MOST_NAMED])) + (", …" if left_out[_MOST_NAMED:] else "")
        _log.warning(
            "session %r: the messages at positions %s are left out of the prompt, as their tool calls and results do "
            "not match; likely causes: %s",
            self.session_id,
            places,
            CAUSES,
        )

    def _is_expected(self, event: SessionEvent) -> bool:
        """A call on an ancestor's branch waits for this very call, or for one beside it (H-12)."""
        if self.branch is None or event.branch == self.branch:
            return False
        return event.branch is None or event.branch in branch_chain(self.branch)

    async def _tail(self, count: int) -> EventList:
        """The last messages of the view before the run, whatever the filter hides."""
        if not self._before:
            return []
        newest = EventFilter.active().replace(
            message_types=_SPOKEN, branch=self.branch, window=Window.last(count, whole_turns=False)
        )
        return await self.repository.events(self.session_id, newest, as_of=self._before)
