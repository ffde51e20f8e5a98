"""The recorded requests in ``tests/data``: what providers accepted, and what they refused."""

from __future__ import annotations

import functools
import gzip
import json
from typing import Any, Final, NamedTuple

from tests.conftest import ROOT

_FILE: Final = ROOT / "tests" / "data" / "provider_requests.jsonl.gz"


class Recorded(NamedTuple):
    """A request as it was sent. ``error`` is the provider's answer where it was refused."""

    name: str
    api: str
    status: int
    request: dict[str, Any]
    error: Any

    @property
    def is_accepted(self) -> bool:
        """Whether the provider took it."""
        return self.status == 200


@functools.cache
def recorded() -> tuple[Recorded, ...]:
    """Every recorded request; callers copy what they change."""
    with gzip.open(_FILE, "rt", encoding="utf-8") as lines:
        return tuple(_recorded(json.loads(line)) for line in lines)


def _recorded(kept: dict[str, Any]) -> Recorded:
    name = f"{kept['file']}#{kept['i']}"
    return Recorded(name, kept["api"], kept["status"], kept["request"], kept.get("error"))
