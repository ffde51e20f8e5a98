"""A-1 to A-5 over random walks of appends, clears, rewinds, compactions and forks, against a naive model."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given

from tests.service.view_model import Append, Clear, Compact, Fork, Model, Rewind, Step, part_of, steps
from turnlog import AsyncSessionService, EventFilter, SessionEvent
from turnlog.compaction import SummarizingCompactionStrategy, WindowCompactionStrategy
from turnlog.testing.contract.exactness import exactly
from turnlog.testing.factories import SESSION_ID, session
from turnlog.testing.strategies import batches

VIEW = EventFilter(active_view=True)
URLS = ["memory:", "sqlite::memory:"]


def places(events: Sequence[SessionEvent]) -> list[int]:
    return [event.position or 0 for event in events]


class Walk:
    """One session, what it must be, and the steps that change both."""

    def __init__(self, service: AsyncSessionService) -> None:
        self.service = service
        self.model = Model()
        self.forks = 0

    async def begin(self, log: Sequence[Sequence[SessionEvent]]) -> None:
        """Store a log batch by batch, so that the model is told of every version of it."""
        await self.service.repository.create(session())
        for batch in log:
            await self.service.repository.append(SESSION_ID, batch)
            await self.look()

    async def look(self) -> None:
        """Read the whole log; the view must be what the newest boundary says."""
        self.model.told(await self.service.events(SESSION_ID))
        assert places(await self.service.events(SESSION_ID, VIEW)) == self.model.views[len(self.model.log)]

    async def take(self, step: Step) -> None:
        match step:
            case Append():
                await self.service.append(SESSION_ID, self.model.batch(step, f"e{len(self.model.log)}"))
                await self.look()
            case Clear():
                await self.clear()
            case Rewind():
                await self.rewind(part_of(len(self.model.log), step.hundredths))
            case Compact():
                await self.compact(step)
            case Fork():
                await self.fork(part_of(len(self.model.log), step.hundredths))

    async def clear(self) -> None:
        """A-5: the system message in force stays."""
        left = self.model.cleared()
        boundary = await self.service.clear(SESSION_ID)
        await self.look()
        assert exactly(boundary) == exactly(self.model.log[-1])
        assert self.model.views[len(self.model.log)] == left

    async def rewind(self, version: int) -> None:
        """A-5: the view is that of the version which counts, and it is no version inside a turn or a batch."""
        effective = self.model.rewound(version)
        boundary = await self.service.rewind(SESSION_ID, version)
        await self.look()
        assert exactly(boundary) == exactly(self.model.log[-1])
        assert self.model.views[len(self.model.log)] == self.model.views[effective]

    async def compact(self, step: Compact) -> None:
        """C-1: it tells what it covers, and nothing changes where it says so."""
        window = WindowCompactionStrategy(last_turns=step.last_turns)
        strategy = SummarizingCompactionStrategy(lambda _: "So far.", window) if step.summarised else window
        before = len(self.model.log)
        done = await self.service.compact(SESSION_ID, strategy)
        await self.look()
        if done.is_unchanged:
            assert len(self.model.log) == before
        else:
            assert sorted(places(done.covered_events)) == sorted(self.model.covered(before + 1))

    async def fork(self, version: int) -> None:
        """A-5: a copy of the prefix, views and all, that leaves its source alone."""
        self.forks += 1
        name = f"fork-{self.forks}"
        end = self.model.end_of(version)
        forked = await self.service.fork(SESSION_ID, name, at=version)
        assert forked.metadata["forked_from"] == SESSION_ID
        copied = await self.service.events(name)
        assert exactly([event.replace(session_id=SESSION_ID) for event in copied]) == exactly(self.model.log[:end])
        for past in (past for past in self.model.views if past <= end):
            assert places(await self.service.events(name, VIEW, as_of=past)) == self.model.views[past]
        await self.service.clear(name)
        await self.look()

    async def check_all_versions(self) -> None:
        """A-3: every earlier view stays readable; a version inside a batch is the one before it."""
        for version in range(len(self.model.log) + 1):
            end = self.model.end_of(version)
            assert places(await self.service.events(SESSION_ID, VIEW, as_of=version)) == self.model.views[end]
            assert places(await self.service.events(SESSION_ID, as_of=version)) == list(range(1, end + 1))

    async def check_coverage(self) -> None:
        """A-2, A-3: ``expand`` gives what left the view, in its order; every message is in the view or covered."""
        covered: set[int] = set()
        for boundary in self.model.boundaries():
            expanded = await self.service.expand(SESSION_ID, boundary)
            assert places(expanded) == self.model.covered(boundary.position or 0)
            covered.update(places(expanded))
        view = set(self.model.views[len(self.model.log)])
        said = {event.position for event in self.model.log if event.is_message}
        assert said <= view | covered


@pytest.mark.parametrize("url", URLS)
@given(log=batches(max_batches=6), walk=steps())
async def test_views_over_random_walks(url: str, log: list[list[SessionEvent]], walk: list[Step]) -> None:
    """A-1 to A-5, B21, B28, B46, B58, B95, B140"""
    async with AsyncSessionService.open(url, allow_system_messages=True) as service:
        walked = Walk(service)
        await walked.begin(log)
        for step in walk:
            await walked.take(step)
        await walked.check_all_versions()
        await walked.check_coverage()
