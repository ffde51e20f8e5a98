"""Windows: which of the events that matched are returned (F-4)."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from turnlog.errors import InvalidValueError


def check_count(what: str, value: object, *, least: int) -> int:
    """Return ``value`` if it is an int (not a bool) of at least ``least``."""
    if type(value) is not int or value < least:
        raise InvalidValueError(f"{what} must be an int of at least {least}, not {value!r}")
    return value


class Window(Struct, frozen=True):
    """``Window.ALL``, ``Window.last(n)`` or ``Window.page(number, size)``: make one with these.

    ``newest`` is n of a last, ``size`` of a page; both are None in ``ALL``.
    """

    newest: int | None = None
    whole_turns: bool = True
    number: int = 0
    size: int | None = None

    ALL: ClassVar[Window]

    def __post_init__(self) -> None:
        if self.newest is not None and self.size is not None:
            raise InvalidValueError("a window is a last or a page, not both")
        if self.newest is not None:
            check_count("n of a last window", self.newest, least=1)
        if type(self.whole_turns) is not bool:
            raise InvalidValueError(f"whole_turns must be a bool, not {self.whole_turns!r}")
        if self.newest is None and not self.whole_turns:
            raise InvalidValueError("whole_turns goes with a last window")
        check_count("page number", self.number, least=0)
        if self.size is not None:
            check_count("page size", self.size, least=1)
        elif self.number:
            raise InvalidValueError("a page number goes with a page size")

    @classmethod
    def last(cls, n: int, whole_turns: bool = True) -> Window:  # noqa: FBT001, FBT002 - `last(50, False)` reads well
        """The newest n matches, extended back to the start of their turn; exactly n without ``whole_turns``."""
        check_count("n of a last window", n, least=1)
        return cls(newest=n, whole_turns=whole_turns)

    @classmethod
    def page(cls, number: int, size: int = 10) -> Window:
        """Page ``number`` (from 0, the oldest) of ``size`` matches; empty past the end."""
        check_count("page size", size, least=1)
        return cls(number=number, size=size)

    @property
    def is_all(self) -> bool:
        """Whether nothing is cut."""
        return self.newest is None and self.size is None


Window.ALL = Window()
