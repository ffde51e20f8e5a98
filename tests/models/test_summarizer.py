"""``chat_summarizer`` over models of both kinds."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

from tests.compaction.building import service_with
from turnlog import AssistantMessage, AsyncSessionService, SystemMessage, ToolCall, UserMessage
from turnlog.compaction import SummarizingCompactionStrategy, WindowCompactionStrategy
from turnlog.models import Prompt, Reply, StreamItem, Usage
from turnlog.models.summarizer import chat_summarizer
from turnlog.testing.factories import conversation

KEEP_ONE = WindowCompactionStrategy(last_turns=1)


class Scripted:
    """Answers with one message and keeps the prompts."""

    def __init__(self, message: AssistantMessage) -> None:
        self.message = message
        self.prompts: list[Prompt] = []

    def generate(self, prompt: Prompt) -> Reply:
        self.prompts.append(prompt)
        return Reply(message=self.message, usage=Usage(11, 3), model="scripted-1")

    def stream(self, prompt: Prompt) -> Iterator[StreamItem]:
        yield self.generate(prompt)


class AsyncScripted:
    def __init__(self, message: AssistantMessage) -> None:
        self._model = Scripted(message)

    async def generate(self, prompt: Prompt) -> Reply:
        return self._model.generate(prompt)

    async def stream(self, prompt: Prompt) -> AsyncIterator[StreamItem]:
        yield self._model.generate(prompt)


def test_the_model_is_asked_without_tools_and_its_text_is_the_summary() -> None:
    model = Scripted(AssistantMessage("They looked things up."))
    with service_with("memory:", [conversation(4)]) as service:
        strategy = SummarizingCompactionStrategy(chat_summarizer(model), KEEP_ONE, max_summary_tokens=50)
        result = service.compact("s", strategy)
    assert result.summary[1] == AssistantMessage("They looked things up.")
    assert (result.model, result.usage) == ("scripted-1", {"input_tokens": 11, "output_tokens": 3})
    (prompt,) = model.prompts
    assert [type(message) for message in prompt.messages] == [SystemMessage, UserMessage]
    assert prompt.tools == ()
    assert prompt.options == {"max_tokens": 50}
    assert result.boundary is not None
    assert (result.boundary.payload or {})["model"] == "scripted-1"


def test_case_b24_an_answer_that_is_only_a_call_is_a_blank_summary() -> None:
    model = Scripted(AssistantMessage(tool_calls=[ToolCall("c", "final_result")]))
    with service_with("memory:", [conversation(4)]) as service:
        result = service.compact("s", SummarizingCompactionStrategy(chat_summarizer(model), KEEP_ONE))
        assert result.reason == "the summary is blank"
        assert service.version("s") == 16


async def test_an_async_model_is_awaited() -> None:
    async with AsyncSessionService.open("memory:") as service:
        await service.create("s")
        await service.append("s", conversation(4))
        strategy = SummarizingCompactionStrategy(chat_summarizer(AsyncScripted(AssistantMessage("Short."))), KEEP_ONE)
        result = await service.compact("s", strategy)
        assert result.summary[1] == AssistantMessage("Short.")
