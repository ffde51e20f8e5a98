"""Recorded requests, as the tests of whole requests take them, and ways to change JSON at any place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tests.formats.recorded import Recorded, recorded
from tests.formats.rules.providers import provider_of

PROVIDERS: Final = ("openai-chat", "openai-responses", "anthropic", "gemini", "bedrock")


def accepted() -> Iterator[tuple[Recorded, str]]:
    """Every request that was accepted, and whose it is."""
    return ((request, provider_of(request)) for request in recorded() if request.is_accepted)


def small(every: int = 3) -> list[tuple[dict[str, Any], str]]:
    """Some of the accepted requests that are not long."""
    return [(r.request, provider) for r, provider in accepted() if len(str(r.request)) < 4_000][::every]


def paths(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The way to each value inside."""
    steps: list[tuple[str | int, Any]] = []
    if isinstance(value, dict):
        steps = list(value.items())
    elif isinstance(value, list):
        steps = list(enumerate(value))
    for step, inner in steps:
        yield (*path, step)
        yield from paths(inner, (*path, step))


def put(value: Any, path: tuple[str | int, ...], new: Any) -> Any:
    """A copy of ``value`` with ``new`` at the end of ``path``."""
    if not path:
        return new
    copied = value.copy()
    copied[path[0]] = put(value[path[0]], path[1:], new)
    return copied


def without(value: Any, path: tuple[str | int, ...]) -> Any:
    """A copy of ``value`` that lacks what stands at the end of ``path``."""
    copied = value.copy()
    if len(path) == 1:
        del copied[path[0]]
    else:
        copied[path[0]] = without(value[path[0]], path[1:])
    return copied


def written(path: tuple[str | int, ...]) -> str:
    """A path as an error names it."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return "".join(steps).removeprefix(".")
