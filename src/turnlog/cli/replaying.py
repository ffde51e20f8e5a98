"""Holding recorded conversations again: read from a file, and driven through client and advisors into a store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from msgspec import Struct

from turnlog.chat import ChatClient, SessionAdvisors
from turnlog.chat.replay import replay_tools
from turnlog.cli.importing.importer import Importer
from turnlog.cli.importing.sources import Source
from turnlog.compaction import TurnCountTrigger, WindowCompactionStrategy
from turnlog.errors import InvalidValueError, RecordingEndedError, RecordingMismatchError
from turnlog.log.event_filter import EventFilter
from turnlog.log.events import EventType, SessionEvent
from turnlog.log.messages import Message
from turnlog.log.tokens import message_tokens
from turnlog.models.protocol import Prompt, Reply
from turnlog.models.recording import Recording, turns_of
from turnlog.models.replay import ReplayModel, in_call_order
from turnlog.service import SessionService
from turnlog.storage.opening import system_clock

_BOUNDARIES = EventFilter(event_types={EventType.COMPACTION})


class Conversation(Struct, frozen=True):
    """A recorded conversation by its name."""

    id: str
    messages: Sequence[Message]
    recording: Recording


class Options(Struct, frozen=True):
    """How conversations are held: turns after which a view is compacted, and messages of history in a prompt."""

    compact_turns: int | None = None
    last: int | None = None

    @property
    def shortens_prompts(self) -> bool:
        """Whether a prompt may hold less than the conversation so far."""
        return self.compact_turns is not None or self.last is not None


class Held(Struct):
    """What came of a conversation."""

    session: str
    requests: int = 0
    model_calls: int = 0
    tool_calls: int = 0
    events: int = 0
    compactions: int = 0
    longest_prompt: int = 0
    longest_prompt_tokens: int = 0


class Watcher(Protocol):
    """Is told what happens while a conversation is held."""

    def on_prompt(self, prompt: Prompt, reply: Reply) -> None:
        """The model was asked, and has answered."""
        ...

    def on_boundary(self, boundary: SessionEvent) -> None:
        """The view was compacted."""
        ...

    def on_request(self) -> None:
        """A request was answered."""
        ...


def read_conversations(path: str, on_skipped: Callable[[str], None] | None) -> Iterator[Conversation]:
    """The conversations of a file in any form that can be imported.

    One that no client holds is told to ``on_skipped``, or without it raised as :class:`InvalidValueError`.
    """
    service = SessionService.open("memory:", allow_system_messages=True)
    with Source(path) as source:
        importer = Importer(source, system_clock(), skip_invalid=on_skipped is not None)
        importer.check()
        importer.write(service.repository)
    for skipped in importer.summary.skipped:
        if on_skipped is not None:
            on_skipped(f"{source.place}:{skipped.line}: {skipped.reason}")
    cursor: str | None = None
    while True:
        page = service.list(cursor=cursor)
        for session in page:
            found = service.iter_events(session.id, EventFilter.real_only())
            messages = [event.content for event in found if event.branch is None]
            try:
                yield Conversation(session.id, messages, turns_of(messages))
            except InvalidValueError as error:
                if on_skipped is None:
                    raise InvalidValueError(f"{session.id} cannot be held again: {error}") from error
                on_skipped(f"{session.id}: {error}")
        cursor = page.cursor
        if cursor is None:
            return


def hold_again(
    conversation: Conversation, session_id: str, service: SessionService, options: Options, watcher: Watcher
) -> Held:
    """Make each request of a conversation in a new session, and see that the log is the recording in the end.

    Raises :class:`RecordingMismatchError` where a prompt or the log is another than what was recorded.
    """
    service.create(session_id)
    held = Held(session_id)
    model = _Watched(ReplayModel(conversation.messages, strict=not options.shortens_prompts), service, held, watcher)
    client = ChatClient(model, advisors=_advisors(service, options), tools=replay_tools(conversation.messages))
    recording = conversation.recording
    for number, request in enumerate(recording.requests, 1):
        try:
            client.call((*recording.systems, *request), session_id=session_id)
        except RecordingEndedError:
            if number < len(recording.requests):
                raise
        held.requests += 1
        _note_boundary(service, held, watcher)
        watcher.on_request()
    held.events = service.version(session_id)
    _check(conversation, session_id, service)
    return held


def _advisors(service: SessionService, options: Options) -> SessionAdvisors:
    turns = options.compact_turns
    return SessionAdvisors(
        service,
        compaction_trigger=None if turns is None else TurnCountTrigger(turns),
        compaction_strategy=None if turns is None else WindowCompactionStrategy(last_turns=max(1, turns // 2)),
        event_filter=None if options.last is None else EventFilter.last(options.last),
    )


class _Watched:
    """The recording's model; what it is asked is counted and told."""

    def __init__(self, model: ReplayModel, service: SessionService, held: Held, watcher: Watcher) -> None:
        self._model = model
        self._counter = service.repository.token_counter
        self._held = held
        self._watcher = watcher
        self.stream = model.stream

    def generate(self, prompt: Prompt) -> Reply:
        reply = self._model.generate(prompt)
        held = self._held
        held.model_calls += 1
        held.tool_calls += len(reply.message.tool_calls)
        held.longest_prompt = max(held.longest_prompt, len(prompt.messages))
        held.longest_prompt_tokens = max(held.longest_prompt_tokens, self.tokens(prompt))
        self._watcher.on_prompt(prompt, reply)
        return reply

    def tokens(self, prompt: Prompt) -> int:
        return sum(message_tokens(message, self._counter) for message in prompt.messages)


def _note_boundary(service: SessionService, held: Held, watcher: Watcher) -> None:
    boundaries = service.events(held.session, _BOUNDARIES)
    for boundary in boundaries[held.compactions :]:
        watcher.on_boundary(boundary)
    held.compactions = len(boundaries)


def _check(conversation: Conversation, session_id: str, service: SessionService) -> None:
    stored = [event.content for event in service.iter_events(session_id, EventFilter.real_only())]
    expected = in_call_order(conversation.messages)
    found = in_call_order(stored)
    for (index, recorded), (_, mine) in zip(expected, found, strict=False):
        if recorded != mine:
            raise RecordingMismatchError(f"{conversation.id}: messages[{index}]", "the log holds another message")
    if len(found) < len(expected):
        raise RecordingMismatchError(f"{conversation.id}: messages[{expected[len(found)][0]}]", "it was not stored")
