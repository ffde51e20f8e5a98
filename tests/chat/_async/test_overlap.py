"""H-3: what a request carries already is not put before it again."""

from __future__ import annotations

from tests.chat._async.talking import Talk
from tests.chat.speaking import asks, lines, logged, look_up
from turnlog import AssistantMessage, AsyncSessionService, MediaPart, TextPart, UserMessage
from turnlog.testing.factories import assistant, calls, results, system, user


class TestOverlap:
    """Seed 004: history that the request carries already is not put before it; compared by content, not identity."""

    async def stored(self, service: AsyncSessionService) -> None:
        await service.create("s")
        await service.append("s", [user(1, "a"), assistant(2, "1"), user(3, "b"), assistant(4, "2")])

    async def asked(self, service: AsyncSessionService, *said: str) -> list[str]:
        """The prompt for a request that carries these messages by turns."""
        talk = Talk(service, "answer")
        messages = [UserMessage(word) if index % 2 == 0 else AssistantMessage(word) for index, word in enumerate(said)]
        await talk.client.call(messages, session_id="s")
        return [word.partition(": ")[2] for word in talk.prompts[0]]

    async def test_case_b75_a_client_that_sends_the_whole_transcript(self, service: AsyncSessionService) -> None:
        """Nothing is doubled in prompt or log: A; A, B; A, B, C give A, B, C."""
        talk = Talk(service, "1", "2", "3")
        said: list[UserMessage | AssistantMessage] = []
        for question, answer in zip("abc", "123", strict=True):
            said.append(UserMessage(question))
            await talk.client.call(said, session_id="s")
            assert talk.prompts[-1] == lines(said)
            said.append(AssistantMessage(answer))
        assert await talk.log() == lines(said)

    async def test_the_rest_of_the_history_is_put_before_a_partial_transcript(
        self, service: AsyncSessionService
    ) -> None:
        await self.stored(service)
        assert await self.asked(service, "b", "2", "c") == ["a", "1", "b", "2", "c"]

    async def test_examples_that_are_no_history_stand_behind_it(self, service: AsyncSessionService) -> None:
        await self.stored(service)
        assert await self.asked(service, "x", "y", "c") == ["a", "1", "b", "2", "x", "y", "c"]
        assert logged(await service.events("s"))[4:] == ["user: c", "assistant: answer"]

    async def test_a_request_with_an_older_transcript_brings_its_own_history(
        self, service: AsyncSessionService
    ) -> None:
        """H-3: nothing is prepended when the overlap is there and the request holds older messages before it."""
        await self.stored(service)
        assert await self.asked(service, "older", "0", "b", "2", "c") == ["older", "0", "b", "2", "c"]

    async def test_a_transcript_in_a_tool_loop(self, service: AsyncSessionService) -> None:
        """From the second round on the request carries the turn so far as well."""
        await self.stored(service)
        talk = Talk(service, asks("c1"), asks("c2"), "done", tools=[look_up])
        await talk.client.call([UserMessage("b"), AssistantMessage("2"), UserMessage("c")], session_id="s")
        before = ["user: a", "assistant: 1", "user: b", "assistant: 2", "user: c"]
        assert [prompt[:5] for prompt in talk.prompts] == [before] * 3
        assert [len(prompt) for prompt in talk.prompts] == [5, 7, 9]

    async def test_the_turn_so_far_is_not_sent_twice(self, service: AsyncSessionService) -> None:
        """From the second round on only the history before the overlap is put in front."""
        await self.stored(service)
        talk = Talk(service, asks("c1"), "done", tools=[look_up])
        await talk.client.call("c", session_id="s")
        before = ["user: a", "assistant: 1", "user: b", "assistant: 2", "user: c"]
        assert talk.prompts == [before, [*before, "assistant: calls c1", "tool c1: found c1"]]

    async def test_media_count(self, service: AsyncSessionService) -> None:
        """The same words about another image are another question: here one of an older transcript of its own."""
        cat = UserMessage([TextPart("This?"), MediaPart(url="https://example.org/cat.png")])
        dog = UserMessage([TextPart("This?"), MediaPart(url="https://example.org/dog.png")])
        talk = Talk(service, "1", "a pet", "2")
        await talk.client.call("a", session_id="s")
        await talk.client.call(cat, session_id="s")
        await talk.client.call([dog, AssistantMessage("a pet"), UserMessage("c")], session_id="s")
        assert talk.prompts[2] == ["user: This?", "assistant: a pet", "user: c"]

    async def test_metadata_does_not_count(self, service: AsyncSessionService) -> None:
        """Seed 004: so the comparison holds where a store does not keep a message's metadata."""
        await service.create("s")
        await service.append_message("s", UserMessage("a", metadata={"from": "web"}))
        await service.append_message("s", AssistantMessage("1", metadata={"took": 3}))
        assert await self.asked(service, "a", "1", "c") == ["a", "1", "c"]

    async def test_a_stored_system_message_among_them(self, service: AsyncSessionService) -> None:
        """It counts as no message of the overlap."""
        await service.create("s")
        await service.append("s", [user(1, "a"), system(2, "be kind"), assistant(3, "1")])
        assert await self.asked(service, "a", "1", "c") == ["be kind", "a", "1", "c"]

    async def test_tool_traffic_overlaps_too(self, service: AsyncSessionService) -> None:
        await service.create("s")
        stored = [user(1, "a"), calls(2, "c1"), results(3, "c1"), assistant(4, "1")]
        await service.append("s", stored)
        talk = Talk(service, "2")
        await talk.client.call([*(event.content for event in stored[1:]), UserMessage("b")], session_id="s")
        assert talk.prompts == [["user: a", "assistant: calls c1", "tool c1: found", "assistant: 1", "user: b"]]
