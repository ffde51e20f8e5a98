"""From OpenAI chat messages to logs: ids, batches, and the session around them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final

from msgspec import Struct

from turnlog.cli.importing.conversations import Conversation, ConversationReader, Form, OnFault
from turnlog.cli.importing.logs import Log
from turnlog.cli.importing.sources import Source
from turnlog.errors import InvalidValueError, SessionAlreadyExistsError
from turnlog.formats import openai_chat
from turnlog.formats.json_fields import is_object, json_name
from turnlog.log.events import SessionEvent
from turnlog.log.messages import AssistantMessage, Message, ToolMessage
from turnlog.log.session import Session, SessionAttributes
from turnlog.storage.protocol import SessionRepository

#: The key of a session's metadata under which stands what the file says of the conversation, and the file's name.
IMPORTED: Final = "imported"


class Naming(Struct, frozen=True):
    """What is said about all sessions of an import."""

    now: datetime
    prefix: str = ""
    principal: str | None = None


class ConversationFile:
    """A file of OpenAI chat messages."""

    def __init__(self, source: Source, form: Form, longest: int, naming: Naming) -> None:
        self._source = source
        self._reader = ConversationReader(source, form, longest)
        self._naming = naming

    def read(self, on_fault: OnFault) -> Iterator[Log]:
        """The logs that the conversations make."""
        for conversation in self._reader.read(on_fault):
            yield ConversationLog(conversation, self._source, self._naming)
            for _ in conversation.messages:  # what the caller left
                pass


class ConversationLog:
    """The log that one conversation makes."""

    def __init__(self, conversation: Conversation, source: Source, naming: Naming) -> None:
        self._conversation = conversation
        self._source = source
        self._naming = naming

    @property
    def line(self) -> int:
        """Where the conversation begins."""
        return self._conversation.line

    def check(self, on_fault: OnFault) -> int | None:
        """Read every message. A wrong one on a line of its own is left out; any other spoils the conversation."""
        count = 0
        for found in self._conversation.messages:
            if found is None:
                continue
            try:
                openai_chat.parse(found.data, found.where)
                count += 1
            except InvalidValueError as error:
                on_fault(found.line, str(error))
                if not self._conversation.is_by_line:
                    return None
        return count

    def session(self) -> Session:
        """Named by the conversation's own id, else by the file and its place in it."""
        return session_of(self._conversation.fields, self._conversation.number, self._source, self._naming)

    def batches(self, repository: SessionRepository, /) -> Iterator[list[SessionEvent]]:
        """One batch for a system or user message, one for a step: a reply with all its tool results.

        So a version stands behind each of them, for ``--as-of`` and ``fork``.
        """
        return batches_of(self._messages(), self.session().id, repository, self._naming.now)

    def _messages(self) -> Iterator[Message]:
        for found in self._conversation.messages:
            if found is None:
                continue
            try:
                yield openai_chat.parse(found.data, found.where)
            except InvalidValueError:
                continue  # its line was named when the file was checked


def session_of(conversation: dict[str, Any], number: int, source: Source, naming: Naming) -> Session:
    """The session for a conversation beside whose messages these fields stand, the ``number``th of its file."""
    fields = dict(conversation)
    metadata = fields.pop("metadata", None)
    if metadata is not None and not is_object(metadata):
        raise InvalidValueError(f"metadata must be an object or null, not {json_name(metadata)}")
    metadata = {IMPORTED: {"file": source.name, "number": number} | fields} | (metadata or {})
    if naming.principal is not None:
        metadata[SessionAttributes.PRINCIPAL_NAME] = naming.principal
    session_id = naming.prefix + _own_name(fields, number, source)
    return Session(id=session_id, created_at=naming.now, metadata=metadata)


def _own_name(fields: dict[str, Any], number: int, source: Source) -> str:
    own_id, origin = fields.get("id"), fields.get("source")
    if own_id is None:
        # No suffix for the first: a file with one conversation may get a second one later.
        return source.stem if number == 1 else f"{source.stem}-{number}"
    if type(own_id) not in (str, int):
        raise InvalidValueError(f"id must be a string or an integer, not {json_name(own_id)}")
    return f"{origin}/{own_id}" if isinstance(origin, str) and origin else str(own_id)


def batches_of(
    messages: Iterable[Message], session_id: str, repository: SessionRepository, now: datetime
) -> Iterator[list[SessionEvent]]:
    """The messages in the batches in which they are appended; what the store has of them stays as it is."""
    return _batches(messages, session_id, stored_before(repository, session_id), now)


def _batches(messages: Iterable[Message], session_id: str, stored: int, now: datetime) -> Iterator[list[SessionEvent]]:
    batch: list[SessionEvent] = []
    for index, message in enumerate(messages):
        # The last step may have grown since it was imported: what is new of it is a batch of its own.
        if batch and (index == stored or not _continues(batch[0].content, message)):
            yield batch
            batch = []
        event_id = event_id_of(session_id, index)
        batch.append(SessionEvent(session_id=session_id, id=event_id, message=message, timestamp=now))
    if batch:
        yield batch


def _continues(first: Message, message: Message) -> bool:
    """Whether a message belongs to the step that ``first`` began."""
    return isinstance(message, ToolMessage) and isinstance(first, AssistantMessage)


def event_id_of(session_id: str, index: int) -> str:
    """The id of the message with that index, counted from 0: the same whenever it is imported.

    The session's id says source and conversation. A UUID (version 8 of RFC 9562: made by a rule of our own), as stores
    keep these in 16 bytes.
    """
    digest = hashlib.blake2b(f"{session_id}\n{index}".encode(), digest_size=16, person=b"turnlog.import").hexdigest()
    variant = "89ab"[int(digest[16], 16) & 3]
    return f"{digest[:8]}-{digest[8:12]}-8{digest[13:16]}-{variant}{digest[17:20]}-{digest[20:]}"


def stored_before(repository: SessionRepository, session_id: str) -> int:
    """How many of a conversation's messages, from its first, the store holds.

    Raises :class:`SessionAlreadyExistsError` where it holds another conversation under this id.
    """

    def is_stored(index: int) -> bool:
        return bool(repository.find_events(session_id, event_ids=[event_id_of(session_id, index)]))

    least, most = 0, repository.version(session_id)
    if most and is_stored(most - 1):
        return most
    if most and not is_stored(0):
        # Somebody else's session has this id: two conversations are not to be mixed in one log.
        raise SessionAlreadyExistsError(session_id)
    while least < most:
        middle = (least + most) // 2
        least, most = (middle + 1, most) if is_stored(middle) else (least, middle)
    return least
