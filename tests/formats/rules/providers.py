"""Recorded requests as a caller of ``problems`` has them."""

from __future__ import annotations

from typing import Any

from tests.formats.recorded import Recorded

_PROVIDERS = {"anthropic-bedrock": "anthropic", "bedrock-converse": "bedrock"}


def provider_of(recorded: Recorded) -> str:
    """Whose rules hold for the request."""
    return _PROVIDERS.get(recorded.api, recorded.api)


def request_of(recorded: Recorded) -> dict[str, Any]:
    """The body, and the model in it where the provider takes it from the address."""
    named = recorded.request.get("url_model")
    return recorded.request | ({"model": named} if named else {})
