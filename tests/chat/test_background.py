"""C-8, H-13: a sync client whose sessions are compacted behind the reply."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from datetime import timedelta

import pytest

from tests.chat._sync.talking import Talk
from turnlog import SessionService, open_store
from turnlog.chat.colours import Background
from turnlog.compaction import SummarizingCompactionStrategy, SummaryRequest, TurnCountTrigger, WindowCompactionStrategy

#: So long a test waits for what must happen; only a failing one waits it out.
PATIENCE = 20.0
LONG = "so much was said " * 50
TENANT: ContextVar[str] = ContextVar("tenant", default="nobody")


@pytest.fixture
def service() -> Iterator[SessionService]:
    with SessionService(open_store("memory:"), turn_wait=timedelta()) as opened:
        yield opened


class TestBackground:
    """C-8: with ``async_compaction`` the reply is returned first."""

    def summarizing(
        self, service: SessionService, *said: str
    ) -> tuple[Talk, threading.Event, threading.Event, list[str]]:
        begun, go_on = threading.Event(), threading.Event()
        seen: list[str] = []

        def summarize(_: SummaryRequest) -> str:
            seen.append(TENANT.get())
            begun.set()
            assert go_on.wait(PATIENCE)
            return "They talked."

        strategy = SummarizingCompactionStrategy(summarize, WindowCompactionStrategy(last_turns=1))
        talk = Talk(
            service,
            *said,
            compaction_trigger=TurnCountTrigger(2),
            compaction_strategy=strategy,
            async_compaction=True,
        )
        return talk, begun, go_on, seen

    def test_it_runs_behind_the_reply_with_the_callers_context(self, service: SessionService) -> None:
        talk, begun, go_on, seen = self.summarizing(service, LONG, "2", "3")
        talk.client.call("a", session_id="s")
        token = TENANT.set("ada")
        assert talk.client.call("b", session_id="s").text == "2"
        TENANT.reset(token)
        assert begun.wait(PATIENCE)
        assert not talk.advisors.close(timedelta())
        assert len(talk.log()) == 4
        go_on.set()
        assert talk.advisors.close()
        assert seen == ["ada"]
        talk.client.call("c", session_id="s")
        assert talk.prompts[2][1:] == ["assistant: They talked.", "user: b", "assistant: 2", "user: c"]

    def test_a_turn_that_overtakes_it_stays_in_the_view(self, service: SessionService) -> None:
        """Seed 004: it lands with the same summary, and no second model call."""
        talk, begun, go_on, seen = self.summarizing(service, LONG, "2", "3", "4")
        talk.client.call("a", session_id="s")
        talk.client.call("b", session_id="s")
        assert begun.wait(PATIENCE)
        talk.client.call("c", session_id="s")
        go_on.set()
        assert talk.advisors.close()
        assert len(seen) == 1
        talk.client.call("d", session_id="s")
        kept = ["assistant: They talked.", "user: b", "assistant: 2", "user: c", "assistant: 3", "user: d"]
        assert talk.prompts[3][1:] == kept


def test_a_compaction_that_cannot_be_started_is_logged(
    service: SessionService, caplog: pytest.LogCaptureFixture
) -> None:
    """C-8: it never reaches the caller."""
    executor = ThreadPoolExecutor(1)
    executor.shutdown()
    last = WindowCompactionStrategy(last_turns=1)
    options = {"compaction_trigger": TurnCountTrigger(1), "compaction_strategy": last, "async_compaction": True}
    talk = Talk(service, "1", executor=executor, **options)
    assert talk.client.call("a", session_id="s").text == "1"
    assert "session 's': its compaction cannot be started" in caplog.text


def test_a_forked_child_has_threads_of_its_own() -> None:
    """A server that forks after its first call: the child's compactions run, and its ``close`` waits for no others."""
    background = Background(None)
    background.start(lambda: None)
    assert background.wait(PATIENCE)
    child = os.fork()
    if not child:
        try:
            done = threading.Event()
            background.start(done.set)
            os._exit(0 if background.wait(PATIENCE) and done.is_set() else 2)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
