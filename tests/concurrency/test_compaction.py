"""C-7, C-8: compactions of one session that run at once, in tasks and in processes."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.concurrency.processes import in_lockstep, workers
from turnlog import (
    AssistantMessage,
    AsyncSessionService,
    EventFilter,
    EventType,
    SessionEvent,
    SessionService,
    UserMessage,
)
from turnlog.compaction import SummarizingCompactionStrategy, SummaryRequest, WindowCompactionStrategy

ROUNDS = 6
LONG = "because " * 40
KEEP_ONE = WindowCompactionStrategy(last_turns=1)


def _say(service: SessionService, turns: range) -> None:
    for number in turns:
        service.append_message("s", UserMessage(f"question {number} {LONG}"))
        service.append_message("s", AssistantMessage(f"answer {number} {LONG}"))


def _check_that_nothing_is_lost(service: SessionService, landed: int) -> None:
    """Every message is in the view, or covered by exactly one boundary; the view begins with one summary."""
    log = service.events("s")
    boundaries = [event for event in log if event.type == EventType.COMPACTION]
    assert len(boundaries) == landed
    covered = [event.id for boundary in boundaries for event in service.expand("s", boundary)]
    view = service.events("s", EventFilter.active())
    assert sorted(covered + [event.id for event in view]) == sorted(event.id for event in log if event.is_message)
    assert [event.is_synthetic for event in view[:3]] == [True, True, False]


def test_of_two_processes_that_compact_at_once_one_lands_each_time(tmp_path: Path) -> None:
    """The other stands down, with its summary made for nothing; both have read the same view."""
    url = f"sqlite:{tmp_path}/s.db"
    with SessionService.open(url) as service:
        service.create("s")
        with workers("compact", [{"url": url, "session_id": "s"}] * 2) as compacting:
            for number in range(ROUNDS):
                _say(service, range(4 * number, 4 * number + 4))
                told = in_lockstep(compacting)
                assert sorted(each["landed"] for each in told) == [False, True], told
                (stood_down,) = (each["reason"] for each in told if not each["landed"])
                assert stood_down == "another compaction, a clear or a rewind came first"
                _check_that_nothing_is_lost(service, number + 1)


def test_appends_of_a_process_meanwhile_stay_in_the_view_unsummarised(tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path}/s.db"
    with SessionService.open(url) as service:
        service.create("s")
        _say(service, range(4))
        with workers("compact", [{"url": url, "session_id": "s"}]) as (compacting,):
            compacting.tell("go")
            assert compacting.hear() == "meet"
            _say(service, range(4, 5))
            compacting.tell("go on")
            assert compacting.hear()["landed"]
        said = [event.content.text.split()[1] for event in service.events("s", EventFilter.active())]
        assert said[2:] == ["3", "3", "4", "4"]
        _check_that_nothing_is_lost(service, 1)


async def test_of_tasks_that_compact_at_once_one_lands(tmp_path: Path) -> None:
    arrived: list[SummaryRequest] = []
    everybody = asyncio.Event()

    async def summarize(request: SummaryRequest) -> str:
        arrived.append(request)
        if len(arrived) == len(services):
            everybody.set()
        await everybody.wait()
        return "What was said."

    url = f"sqlite:{tmp_path}/s.db"
    with SessionService.open(url) as service:
        service.create("s")
        _say(service, range(5))
        async with AsyncSessionService.open(url) as first:
            services = [first, *(AsyncSessionService(first.repository) for _ in range(3))]
            strategy = SummarizingCompactionStrategy(summarize, KEEP_ONE)
            results = await asyncio.gather(*(each.compact("s", strategy) for each in services))
        assert sum(not result.is_unchanged for result in results) == 1
        _check_that_nothing_is_lost(service, 1)


async def test_a_task_that_compacts_while_another_does_is_told_so(tmp_path: Path) -> None:
    begun, may_end = asyncio.Event(), asyncio.Event()

    async def summarize(_request: SummaryRequest) -> str:
        begun.set()
        await may_end.wait()
        return "What was said."

    async with AsyncSessionService.open(f"sqlite:{tmp_path}/s.db") as service:
        await service.create("s")
        for number in range(4):
            await service.append("s", SessionEvent(session_id="s", message=UserMessage(f"question {number} {LONG}")))
        running = asyncio.create_task(service.compact("s", SummarizingCompactionStrategy(summarize, KEEP_ONE)))
        await begun.wait()
        second = await service.compact("s", KEEP_ONE)
        assert second.reason == "another compaction of this session is running"
        may_end.set()
        assert not (await running).is_unchanged
