"""Servers on this machine that stand in for providers: one that others wrote, one that plays what is written here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from llmock.testing import LLMockServer

from tests.models.playing_server import PlayingServer
from tests.models.providers import Chat, Provider, Way


@pytest.fixture(scope="session")
def _llmock() -> Iterator[LLMockServer]:
    with LLMockServer() as server:
        yield server


@pytest.fixture
def stand_in(_llmock: LLMockServer) -> LLMockServer:
    """A server that speaks the APIs, says what it is told to, and keeps what it is asked."""
    _llmock.state.reset()
    return _llmock


@pytest.fixture
def chat(stand_in: LLMockServer, tmp_path: Path) -> Callable[[Provider, Way], Chat]:
    """Conversations on one session, through the stand-in."""

    def start(provider: Provider, way: Way) -> Chat:
        store = f"sqlite:{tmp_path}/chat.db"
        return Chat(provider, way, store, base_url=stand_in.base_url(provider.server), api_key="k")

    return start


@pytest.fixture
def playing() -> Iterator[PlayingServer]:
    """A server that plays the answers that it is given, byte for byte."""
    with PlayingServer() as server:
        yield server
