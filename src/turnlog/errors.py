"""Every error that turnlog raises, in one tree.

::

    TurnlogError
    ├── InvalidValueError (ValueError)            a value refused when it is made
    │   ├── UnstorableError                       not JSON, too deep, too many digits; names the path
    │   ├── InvalidBatchError                     empty, an id twice, two sessions, a misplaced boundary
    │   ├── ReservedEventTypeError                COMPACTION is written by compaction, rewind and clear
    │   ├── SystemMessageRefusedError             system messages are not allowed on this service
    │   ├── MissingSessionIdError                 a chat call that names no session
    │   ├── ToolDefinitionError                   a function that cannot be a tool
    │   ├── InvalidReplyError                     a model's reply that cannot be stored or answered
    │   └── ImportFormatError                     a file that is not what it claims to be; names the line
    ├── NotFoundError (LookupError)
    │   ├── SessionNotFoundError
    │   ├── EventNotFoundError
    │   ├── VersionOutOfRangeError                a version beyond the log
    │   ├── NotIndexedError                       a look-up by a metadata key that is not indexed
    │   ├── IndexNotBuiltError                    a new indexed key whose index has to be filled first
    │   └── RecordingEndedError                   a replayed conversation that has no further reply
    ├── ConflictError (RuntimeError)              somebody else was there first
    │   ├── SessionAlreadyExistsError
    │   ├── VersionConflictError                  the log has moved
    │   ├── EventContentConflictError             a stored event id with other content
    │   ├── PartialReplayError                    some ids of the batch are stored, others are not
    │   ├── TurnInterruptedError                  another holder has taken the turn over
    │   ├── RunMismatchError                      a retry under a known run id with other messages
    │   ├── RunSupersededError                    a retry of a run that the conversation has left behind
    │   └── RecordingMismatchError                a prompt that is not what the recording has there
    ├── PrincipalMismatchError (PermissionError)  the session is another principal's
    ├── SessionBusyError (TimeoutError)           a turn is held by somebody else
    ├── AppendOutcomeUnknownError (OSError)       the answer to a commit is lost; appending again is safe
    ├── StoreError (OSError)                      the store itself
    │   ├── StoreUnavailableError                 cannot be opened, reached, or written
    │   ├── StoreBusyError                        its lock was not free in time
    │   ├── StoreFullError                        no room left
    │   ├── StoreClosedError                      used after ``close()``
    │   ├── ForeignStoreError                     a file or database of another program
    │   ├── SchemaVersionError                    written by another version of turnlog
    │   ├── UnreadableDataError                   stored data that cannot be read (R-10)
    │   └── BrokenInvariantError                  the log contradicts itself; nothing is repaired
    ├── ModelUnavailableError (OSError)           a model's provider that cannot be reached, or refuses
    └── MissingExtraError (ImportError)           an optional dependency; names the pip line

Attributes carry the facts; messages are for people. ``exit_code`` and ``http_status`` belong to the class.
"""

from __future__ import annotations

from typing import ClassVar


class TurnlogError(Exception):
    """The root of everything turnlog raises on purpose."""

    exit_code: ClassVar[int] = 1
    http_status: ClassVar[int] = 500


class InvalidValueError(TurnlogError, ValueError):
    """A value that is refused when it is made; nothing was written."""

    exit_code = 2
    http_status = 422


class UnstorableError(InvalidValueError):
    """A value that no store keeps losslessly (R-9). ``path`` says where it is, as in ``metadata['a'][0]``."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class InvalidBatchError(InvalidValueError):
    """A batch that cannot be appended whatever the log holds (R-4)."""


class ReservedEventTypeError(InvalidValueError):
    """``COMPACTION`` events are written by compaction, rewind and clear alone (V-4)."""


class SystemMessageRefusedError(InvalidValueError):
    """A system message on a service that does not store them; ``allow_system_messages=True`` does."""


class MissingSessionIdError(InvalidValueError):
    """A chat call without a session id, or with a blank one (H-3): there is no default that all would share."""


class ToolDefinitionError(InvalidValueError):
    """A function that cannot be a tool (H-9): a parameter without a type hint, a name that no provider takes."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"tool {name!r}: {reason}")
        self.name = name
        self.reason = reason


class InvalidReplyError(InvalidValueError):
    """A model's reply that is no reply: empty, or with one id for two calls. It was not stored."""

    exit_code = 1
    http_status = 502


class ImportFormatError(InvalidValueError):
    """A file that cannot be imported. ``source`` and ``line`` (from 1; 0 where lines mean nothing) say where."""

    exit_code = 8

    def __init__(self, source: str, line: int, reason: str) -> None:
        super().__init__(f"{source}:{line}: {reason}" if line else f"{source}: {reason}")
        self.source = source
        self.line = line
        self.reason = reason


class NotFoundError(TurnlogError, LookupError):
    """Something that was named is not there."""

    exit_code = 3
    http_status = 404


class SessionNotFoundError(NotFoundError):
    """No such session, or it has expired (R-5, R-7)."""

    def __init__(self, session_id: str) -> None:
        super().__init__(f"session {session_id!r} does not exist or has expired")
        self.session_id = session_id


class EventNotFoundError(NotFoundError):
    """No such event in this session."""

    def __init__(self, session_id: str, event: str) -> None:
        super().__init__(f"session {session_id!r} has no event {event}")
        self.session_id = session_id
        self.event = event


class VersionOutOfRangeError(NotFoundError):
    """A version below 0 or beyond the log (A-3)."""

    def __init__(self, session_id: str, version: int, newest: int) -> None:
        super().__init__(f"session {session_id!r} has versions 0 to {newest}, not {version}")
        self.session_id = session_id
        self.version = version
        self.newest = newest


class NotIndexedError(NotFoundError):
    """A look-up by a metadata key that this store does not index (V-2)."""

    http_status = 422

    def __init__(self, name: str, indexed: tuple[str, ...]) -> None:
        super().__init__(
            f"metadata key {name!r} is not indexed; indexed are {', '.join(map(repr, indexed))}. "
            f"Open the store with indexed_metadata=({name!r},), or run `turnlog index KEY`"
        )
        self.name = name
        self.indexed = indexed


class IndexNotBuiltError(NotFoundError):
    """A store with sessions was opened with new indexed keys (V-2); the message names the command that fills it."""

    exit_code = 7
    http_status = 503

    def __init__(self, names: tuple[str, ...]) -> None:
        commands = "; ".join(f"turnlog index {name}" for name in names)
        super().__init__(f"no index is built for {', '.join(map(repr, names))}: run `{commands}`")
        self.names = names


class RecordingEndedError(NotFoundError):
    """A replayed conversation has no further reply of the model; what it was asked is stored all the same."""

    def __init__(self, replies: int) -> None:
        super().__init__(f"the recording has ended: it has {replies} replies, and no other")
        self.replies = replies


class ConflictError(TurnlogError, RuntimeError):
    """Somebody else was there first; nothing was written."""

    exit_code = 4
    http_status = 409


class SessionAlreadyExistsError(ConflictError):
    """``create`` with an id that is taken; the existing session is untouched (R-2)."""

    def __init__(self, session_id: str) -> None:
        super().__init__(f"session {session_id!r} exists already")
        self.session_id = session_id


class VersionConflictError(ConflictError):
    """The log is not at the version that was expected (R-3)."""

    def __init__(self, session_id: str, expected: int, actual: int) -> None:
        super().__init__(f"session {session_id!r} is at version {actual}, not {expected}")
        self.session_id = session_id
        self.expected = expected
        self.actual = actual


class EventContentConflictError(ConflictError):
    """An event id that is stored with other content (R-4)."""

    def __init__(self, session_id: str, event_id: str, position: int) -> None:
        super().__init__(f"event {event_id!r} of session {session_id!r} is stored at {position} with other content")
        self.session_id = session_id
        self.event_id = event_id
        self.position = position


class PartialReplayError(ConflictError):
    """Some events of the batch are stored and others are not (R-4)."""

    def __init__(self, session_id: str, stored: tuple[str, ...], missing: tuple[str, ...]) -> None:
        super().__init__(
            f"{len(stored)} of {len(stored) + len(missing)} events of the batch are stored in session {session_id!r}; "
            f"a replay names the same batch"
        )
        self.session_id = session_id
        self.stored = stored
        self.missing = missing


class TurnInterruptedError(ConflictError):
    """The turn this caller held was taken over, or ended (H-11); nothing was written."""

    def __init__(self, session_id: str) -> None:
        super().__init__(f"the turn on session {session_id!r} is no longer held by this caller")
        self.session_id = session_id


class RunMismatchError(ConflictError):
    """A call under the run id of an earlier one whose user messages were others (H-8)."""

    def __init__(self, session_id: str, run_id: str) -> None:
        super().__init__(
            f"run {run_id!r} of session {session_id!r} began with other user messages; a new request gets a new run id"
        )
        self.session_id = session_id
        self.run_id = run_id


class RunSupersededError(ConflictError):
    """An unfinished run that is no longer the newest turn of its session (H-8): it is not gone on with."""

    def __init__(self, session_id: str, run_id: str) -> None:
        super().__init__(f"session {session_id!r} has gone on since run {run_id!r} was left unfinished")
        self.session_id = session_id
        self.run_id = run_id


class RecordingMismatchError(ConflictError):
    """A prompt that is not what the recording has before its next reply; ``place`` is where in the prompt."""

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(f"{place}: {reason}")
        self.place = place
        self.reason = reason


class PrincipalMismatchError(TurnlogError, PermissionError):
    """A call for one principal on a session of another, or of none (H-10); nothing of it was read or written."""

    exit_code = 4
    http_status = 403

    def __init__(self, session_id: str, principal: str) -> None:
        super().__init__(f"session {session_id!r} does not belong to {principal!r}")
        self.session_id = session_id
        self.principal = principal


class SessionBusyError(TurnlogError, TimeoutError):
    """A turn of somebody else is running on the session (H-11); nothing was written."""

    exit_code = 5
    http_status = 423

    def __init__(self, session_id: str) -> None:
        super().__init__(f"another turn is running on session {session_id!r}; try again when it has ended")
        self.session_id = session_id


class AppendOutcomeUnknownError(TurnlogError, OSError):
    """The answer to a commit was lost and could not be settled (R-14). Appending ``event_ids`` again is safe."""

    exit_code = 9
    http_status = 503

    def __init__(self, session_id: str, event_ids: tuple[str, ...]) -> None:
        super().__init__(
            f"whether {len(event_ids)} events were stored in session {session_id!r} is not known; "
            f"append them again with the same ids"
        )
        self.session_id = session_id
        self.event_ids = event_ids


class StoreError(TurnlogError, OSError):
    """The store failed; the driver's error is the cause."""

    exit_code = 6
    http_status = 503


class StoreUnavailableError(StoreError):
    """The store cannot be opened, reached, or written to."""


class StoreBusyError(StoreError):
    """The store's lock was not free in time."""

    exit_code = 5


class StoreFullError(StoreError):
    """No room is left where the store lies; the transaction was undone."""

    http_status = 507


class StoreClosedError(StoreError):
    """The store was used after ``close()``."""


class ForeignStoreError(StoreError):
    """The file or database belongs to another program; it was not touched."""

    exit_code = 7


class SchemaVersionError(StoreError):
    """The store was written by another version of turnlog; ``found`` and ``supported`` are schema numbers (R-13)."""

    exit_code = 7

    def __init__(self, message: str, found: int, supported: int) -> None:
        super().__init__(message)
        self.found = found
        self.supported = supported


class UnreadableDataError(StoreError):
    """Stored data that cannot be read; it is never replaced by something empty (R-10).

    ``position`` is None where the damage is not in one event.
    """

    exit_code = 7
    http_status = 500

    def __init__(self, session_id: str | None, position: int | None, reason: str) -> None:
        place = "the store" if session_id is None else f"session {session_id!r}"
        where = place if position is None else f"{place}, event {position}"
        super().__init__(f"{where}: {reason}")
        self.session_id = session_id
        self.position = position
        self.reason = reason


class BrokenInvariantError(StoreError):
    """An assertion on positions or versions failed (R-14): the log contradicts itself, and nothing is repaired."""

    exit_code = 7
    http_status = 500


class ModelUnavailableError(TurnlogError, OSError):
    """A model's provider cannot be reached, or refuses the request; the SDK's error is the cause."""

    exit_code = 12
    http_status = 502


class MissingExtraError(TurnlogError, ImportError):
    """An optional dependency is not installed. ``extra`` names it; the message holds the pip line."""

    exit_code = 10

    def __init__(self, extra: str, package: str) -> None:
        super().__init__(f"{package} is not installed: pip install 'turnlog[{extra}]'")
        self.extra = extra
        self.package = package
