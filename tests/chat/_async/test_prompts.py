"""H-3: what the memory advisor puts before the request, in which order, and what its filters hide."""

from __future__ import annotations

from typing import Any

import pytest

from tests.chat._async.talking import Talk
from tests.chat.speaking import asks, look_up
from turnlog import (
    AssistantMessage,
    AsyncSessionService,
    EventFilter,
    InvalidValueError,
    Message,
    MessageType,
    SystemMessage,
    UserMessage,
)
from turnlog.chat import EVENT_FILTER, AsyncSessionMemoryAdvisor
from turnlog.compaction import WindowCompactionStrategy
from turnlog.testing.factories import assistant, system, user


class TestFilters:
    """Seed 004: the advisor's filter, the call's merged over it, always within the view."""

    async def test_the_advisors_filter_narrows_the_history(self, service: AsyncSessionService) -> None:
        talk = Talk(service, "1", "2", "3", event_filter=EventFilter.last(2))
        for said in "abc":
            await talk.client.call(said, session_id="s")
        assert talk.prompts[2] == ["user: b", "assistant: 2", "user: c"]

    async def test_a_calls_filter_is_merged_over_it(self, service: AsyncSessionService) -> None:
        """Its window wins; what it leaves unset stays."""
        users = EventFilter(message_types={MessageType.USER})
        talk = Talk(service, "1", "2", "3", "4", event_filter=users)
        for said in "abc":
            await talk.client.call(said, session_id="s")
        await talk.client.call("d", session_id="s", event_filter=EventFilter.last(2, whole_turns=False))
        assert talk.prompts[2] == ["user: a", "user: b", "user: c"]
        assert talk.prompts[3] == ["user: b", "user: c", "user: d"]

    async def test_a_calls_filter_is_of_that_call_alone(self, service: AsyncSessionService) -> None:
        talk = Talk(service, "1", "2", "3")
        await talk.client.call("a", session_id="s")
        await talk.client.call("b", session_id="s", context={EVENT_FILTER: EventFilter.last(1, whole_turns=False)})
        await talk.client.call("c", session_id="s", context={EVENT_FILTER: None})
        assert talk.prompts[1] == ["assistant: 1", "user: b"]
        assert talk.prompts[2] == ["user: a", "assistant: 1", "user: b", "assistant: 2", "user: c"]

    async def test_covered_events_never_reach_a_prompt(self, service: AsyncSessionService) -> None:
        """Whatever either filter says: ``EventFilter.all()`` does not leave the view."""
        talk = Talk(service, "1", "2", "3", event_filter=EventFilter.all())
        for said in "ab":
            await talk.client.call(said, session_id="s")
        await service.compact("s", WindowCompactionStrategy(last_turns=1))
        await talk.client.call("c", session_id="s", event_filter=EventFilter.all())
        assert talk.prompts[2] == ["user: b", "assistant: 2", "user: c"]

    async def test_filter_and_window_leave_the_current_turn_whole(self, service: AsyncSessionService) -> None:
        """H-3: they apply to what lies before the turn, on every round of the call."""
        talk = Talk(service, "1", asks("c1"), asks("c2"), "2", tools=[look_up], event_filter=EventFilter.last(1))
        await talk.client.call("a", session_id="s")
        users = EventFilter(message_types={MessageType.USER}, window=EventFilter.last(1).window)
        await talk.client.call("b", session_id="s", event_filter=users)
        turn = ["user: b", "assistant: calls c1", "tool c1: found c1", "assistant: calls c2", "tool c2: found c2"]
        assert talk.prompts[1:] == [["user: a", *turn[:1]], ["user: a", *turn[:3]], ["user: a", *turn]]

    @pytest.mark.parametrize("wrong", ["last", 5, {"window": 5}])
    async def test_a_filter_is_an_event_filter(self, service: AsyncSessionService, wrong: Any) -> None:
        with pytest.raises(InvalidValueError, match="must be an EventFilter"):
            await Talk(service, "never").client.call("hi", session_id="s", event_filter=wrong)
        with pytest.raises(InvalidValueError, match="must be an EventFilter"):
            AsyncSessionMemoryAdvisor(service, event_filter=wrong)


class TestSystemMessages:
    """Seed 004: the latest stored one and the request's stand first, exact duplicates once, a blank one is not sent."""

    async def test_they_stand_first(self, service: AsyncSessionService) -> None:
        talk = Talk(service, "1", "2", system="be kind")
        await talk.client.call("a", session_id="s")
        await talk.client.call("b", session_id="s")
        assert talk.prompts[1] == ["system: be kind", "user: a", "assistant: 1", "user: b"]
        assert await talk.log() == ["user: a", "assistant: 1", "user: b", "assistant: 2"]

    async def test_the_latest_stored_one_comes_before_the_requests(self, service: AsyncSessionService) -> None:
        await service.create("s")
        await service.append("s", [system(1, "old"), user(2, "a"), system(3, "stored"), assistant(4, "1")])
        talk = Talk(service, "2", system="asked")
        await talk.client.call("b", session_id="s")
        assert talk.prompts == [["system: stored", "system: asked", "user: a", "assistant: 1", "user: b"]]

    async def test_case_b05_no_filter_hides_the_stored_one(self, service: AsyncSessionService) -> None:
        """H-3: it is taken whatever the filter hides."""
        await service.create("s")
        await service.append(
            "s", [system(1, "stored"), user(2, "a"), assistant(3, "1"), user(4, "b"), assistant(5, "2")]
        )
        talk = Talk(service, "3", event_filter=EventFilter.last(1))
        users = EventFilter(message_types={MessageType.USER}, keyword="b")
        await talk.client.call("c", session_id="s", event_filter=users)
        assert talk.prompts == [["system: stored", "user: b", "user: c"]]

    async def test_exact_duplicates_are_sent_once(self, service: AsyncSessionService) -> None:
        await service.create("s")
        await service.append("s", [system(1, "be kind")])
        talk = Talk(service, "1")
        said: list[Message] = [
            SystemMessage("be kind"),
            SystemMessage("be brief"),
            SystemMessage("be brief"),
            UserMessage("a"),
        ]
        await talk.client.call(said, session_id="s")
        assert talk.prompts == [["system: be kind", "system: be brief", "user: a"]]

    @pytest.mark.parametrize("blank", ["", "  ", "\n"])
    async def test_a_blank_one_is_not_sent(self, service: AsyncSessionService, blank: str) -> None:
        talk = Talk(service, "1")
        await talk.client.call("a", session_id="s", system=blank)
        assert talk.prompts == [["user: a"]]

    async def test_case_b135_one_in_the_middle_moves_to_the_front(self, service: AsyncSessionService) -> None:
        talk = Talk(service, "1")
        said: list[Message] = [
            UserMessage("example"),
            AssistantMessage("answer"),
            SystemMessage("be kind"),
            UserMessage("a"),
        ]
        await talk.client.call(said, session_id="s")
        assert talk.prompts == [["system: be kind", "user: example", "assistant: answer", "user: a"]]
