"""One rule: what must hold, what is said where it does not, and the function that finds the places."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, NamedTuple, TypeVar

from msgspec import Struct

from turnlog.formats.rules.problem import Problem, ProblemLevel

Request = TypeVar("Request")


class Finding(NamedTuple):
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
        for place, values, level in self.find(request):
            named = {"place": place, "dotted": place.replace("[", ".").replace("]", "")} | values
            yield Problem(
                rule=self.id,
                level=level or self.level,
                place=place,
                message=self.message.format_map(named),
                says=None if self.says is None else self.says.format_map(named),
            )
