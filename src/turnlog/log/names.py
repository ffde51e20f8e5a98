"""Identifiers: what a session or event id, a branch, or a principal may look like (R-8, V-3)."""

from __future__ import annotations

import os
import threading
import time
import unicodedata

from turnlog.errors import InvalidValueError

#: Code points, not bytes: MySQL and PostgreSQL index columns are declared with the same figure.
LONGEST_NAME = 255


def check_name(what: str, value: object) -> str:
    """Return ``value`` if it is a string of 1 to 255 code points without control characters or lone surrogates."""
    if type(value) is not str:
        raise InvalidValueError(f"{what} must be a string, not {type(value).__name__}")
    if not 0 < len(value) <= LONGEST_NAME:
        raise InvalidValueError(f"{what} must have 1 to {LONGEST_NAME} characters, not {len(value)}")
    # isprintable() is one C call and refuses all that we refuse (and some that we keep, such as U+2028).
    if not value.isprintable():
        for index, character in enumerate(value):
            if unicodedata.category(character) in ("Cc", "Cs"):
                raise InvalidValueError(f"{what} has a control or surrogate character at index {index}: {value[:40]!a}")
    return value


def check_branch(value: object) -> str | None:
    """Return ``value`` if it is None (root) or a dot-separated path without an empty segment."""
    if value is None:
        return None
    branch = check_name("branch", value)
    if "" in branch.split("."):
        raise InvalidValueError(f"branch has an empty segment: {branch!r}")
    return branch


def branch_chain(branch: str) -> tuple[str, ...]:
    """The branch and its ancestors, longest first, root left out: ``a.b.c`` gives ``a.b.c``, ``a.b``, ``a``."""
    segments = branch.split(".")
    return tuple(".".join(segments[:length]) for length in range(len(segments), 0, -1))


class _Uuid7Clock:
    """Milliseconds and a 12-bit counter that never run backwards within this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = 0

    def tick(self) -> int:
        """Return ``milliseconds << 12 | counter``, greater than every value returned before."""
        now = (time.time_ns() // 1_000_000) << 12
        with self._lock:
            self._last = now if now > self._last else self._last + 1
            return self._last


_clock = _Uuid7Clock()


def _renew_clock() -> None:
    # A fork may copy the lock while another thread holds it. Uniqueness does not hang on the counter:
    # the 62 random bits come from the kernel.
    global _clock  # noqa: PLW0603 - one clock a process
    _clock = _Uuid7Clock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_clock)


def new_id() -> str:
    """A UUIDv7 (RFC 9562) as text: unique, and increasing within one process."""
    tick = _clock.tick()
    random = int.from_bytes(os.urandom(8), "big") & 0x3FFF_FFFF_FFFF_FFFF
    digits = f"{(tick >> 12 & 0xFFFF_FFFF_FFFF) << 80 | 7 << 76 | (tick & 0xFFF) << 64 | 2 << 62 | random:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
