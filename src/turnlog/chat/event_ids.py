"""Ids of the events of a run, so that a retry of the run stores nothing twice (H-8)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from hashlib import blake2b

from msgspec.structs import force_setattr

from turnlog.log.codec import content_key
from turnlog.log.events import EventMetadata, SessionEvent
from turnlog.log.messages import Message
from turnlog.storage.protocol import Clock

_DIGITS = 16


class RunEvents:
    """Makes the events of one run on one branch; the same messages in the same order get the same ids.

    An id is a digest of run, branch, and content, role included, and of how many events of equal content the run has
    stored before: models say the same thing twice, and use ids of calls again.
    """

    def __init__(self, session_id: str, run_id: str, branch: str | None, clock: Clock) -> None:
        self._session_id = session_id
        self._run_id = run_id
        self._branch = branch
        self._clock = clock
        self._seen: Counter[bytes] = Counter()

    def events(self, messages: Sequence[Message]) -> tuple[SessionEvent, ...]:
        """The events that store ``messages`` next, in this order. Nothing is counted before :meth:`stored`."""
        seen = self._seen.copy()
        made: list[SessionEvent] = []
        for message in messages:
            event = SessionEvent(
                id=self._run_id,  # until its content is known
                session_id=self._session_id,
                message=message,
                branch=self._branch,
                metadata={EventMetadata.RUN_ID: self._run_id},
                timestamp=self._clock(),
            )
            content = content_key(event)
            force_setattr(event, "id", digest(self._run_id, self._branch or "", content, seen[content]))
            made.append(event)
            seen[content] += 1
        return tuple(made)

    def stored(self, events: Iterable[SessionEvent]) -> None:
        """Count what is stored of the run, by this attempt or an earlier one."""
        self._seen.update(content_key(event) for event in events)


def digest(*parts: object) -> str:
    """A UUID (version 8) of these parts: 16 bytes, as ids are stored best."""
    hashed = blake2b(digest_size=_DIGITS)
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode("utf-8", "surrogatepass")
        hashed.update(len(data).to_bytes(8, "big") + data)
    digits = hashed.hexdigest()
    return f"{digits[:8]}-{digits[8:12]}-8{digits[13:16]}-8{digits[17:20]}-{digits[20:]}"
