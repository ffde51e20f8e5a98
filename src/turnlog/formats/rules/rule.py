"""One rule: what must hold, what is said where it does not, and the function that finds the places."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from msgspec import Struct

from turnlog.formats.rules.problem import Problem, ProblemLevel

Request = TypeVar("Request")


class Finding(Struct, frozen=True):
    """A place where a rule is broken. ``values`` fill its sentences; ``level`` stands in for the rule's own."""

    place: str
    values: dict[str, str | int] = {}
    level: ProblemLevel | None = None


class Rule(Struct, Generic[Request], frozen=True, kw_only=True):
    """A row of a provider's table.

    ``demand`` is the rule as a sentence. ``message`` and ``says`` are templates for :meth:`str.format`: they know
    ``place``, ``dotted`` (the place as ``messages.3.content.0``) and what the finding names.
    """

    id: str
    level: ProblemLevel = ProblemLevel.ERROR
    demand: str
    message: str
    says: str | None = None
    find: Callable[[Request], Iterator[Finding]]

    def problems(self, request: Request) -> Iterator[Problem]:
        """The places in ``request`` where the rule is broken, in order."""
        for found in self.find(request):
            dotted = found.place.replace("[", ".").replace("]", "")
            named = {"place": found.place, "dotted": dotted} | found.values
            yield Problem(
                rule=self.id,
                level=found.level or self.level,
                place=found.place,
                message=self.message.format_map(named),
                says=None if self.says is None else self.says.format_map(named),
            )
