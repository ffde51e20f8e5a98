"""The advisors in a tool loop that is not ours: it sends flat lists, its turn's or its whole transcript's (H-3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.chat.scripts import KINDS, call_of, tools, users_of
from tests.chat.scripts import Turn as ScriptedTurn
from tests.chat.strict import check_prompt
from tests.chat.test_scripts import check_log
from turnlog import AssistantMessage, EventFilter, Message, SessionService, ToolMessage, ToolResult
from turnlog.chat import RUN_ID, SESSION_ID, ChatClient, ModelRequest, SessionAdvisors, SessionMemoryAdvisor
from turnlog.compaction import SummarizingCompactionStrategy, WindowCompactionStrategy
from turnlog.models.protocol import Prompt, Reply
from turnlog.models.scripted import ScriptedModel

TURNS = st.lists(
    st.builds(
        ScriptedTurn,
        users=st.integers(1, 2),
        batches=st.lists(st.lists(st.sampled_from(KINDS[:3]), min_size=1, max_size=3).map(tuple), max_size=2).map(
            tuple
        ),
        fails_in=st.none(),
    ),
    min_size=1,
    max_size=3,
)


def said_by_model(turns: list[ScriptedTurn]) -> list[AssistantMessage]:
    """The replies to all turns, in order; ids of calls are used again in every round."""
    said: list[AssistantMessage] = []
    for number, turn in enumerate(turns):
        asked = [[call_of(index, kind) for index, kind in enumerate(batch)] for batch in turn.batches]
        said += [AssistantMessage(None, tool_calls=calls) for calls in asked]
        said.append(AssistantMessage(f"Reply to request {number}."))
    return said


class Host:
    """A loop as frameworks have it: it appends to one list, and knows nothing of sessions.

    ``keeps`` what it has sent before when the next request comes; ``context`` makes what each model call carries.
    """

    def __init__(
        self, memory: SessionMemoryAdvisor, model: ScriptedModel, context: Callable[[], dict[str, Any]], *, keeps: bool
    ) -> None:
        self._memory = memory
        self._model = model
        self._context = context
        self._keeps = keeps
        self._messages: list[Message] = []
        self._functions = {tool.spec.name: tool.function for tool in tools()}

    def ask(self, said: list[Message]) -> str:
        self._messages = [*(self._messages if self._keeps else ()), *said]
        while True:
            request = ModelRequest(messages=tuple(self._messages), context=self._context())
            reply: Reply = self._memory.around_model_call(request, lambda asked: self._model.generate(asked.prompt()))
            self._messages.append(reply.message)
            if not reply.message.tool_calls:
                return reply.message.text
            self._messages += [ToolMessage((self._run(call),)) for call in reply.message.tool_calls]

    def _run(self, call: Any) -> ToolResult:
        try:
            return ToolResult(call.id, self._functions[call.name](text="x"), name=call.name)
        except Exception as error:  # noqa: BLE001 - as hosts do
            return ToolResult(call.id, str(error), name=call.name)


def hosted(turns: list[ScriptedTurn], *, keeps: bool, same_run: bool) -> tuple[list[Prompt], SessionService]:
    service = SessionService.open("memory:")
    model = ScriptedModel(said_by_model(turns))
    number = [0]

    def context() -> dict[str, Any]:
        return {SESSION_ID: "s"} | ({RUN_ID: f"run-{number[0]}"} if same_run else {})

    host = Host(SessionAdvisors(service).memory, model, context, keeps=keeps)
    for number[0], turn in enumerate(turns):
        assert host.ask(users_of(number[0], turn)) == f"Reply to request {number[0]}."
    return model.prompts, service


@pytest.mark.parametrize("same_run", [True, False], ids=["run ids", "no run ids"])
@pytest.mark.parametrize("keeps", [True, False], ids=["whole transcript", "the turn"])
@given(turns=TURNS)
def test_the_same_is_stored_and_sent_as_by_our_own_loop(
    turns: list[ScriptedTurn], *, keeps: bool, same_run: bool
) -> None:
    """Nothing twice in the log, nothing twice in a prompt, however much the host's list holds (CASE B38, B75)."""
    prompts, service = hosted(turns, keeps=keeps, same_run=same_run)
    log = service.events("s")
    check_log(log)
    own = SessionService.open("memory:")
    model = ScriptedModel(said_by_model(turns))
    client = ChatClient(model, advisors=SessionAdvisors(own), tools=tools(), tool_error_details=True)
    for number, turn in enumerate(turns):
        client.call(users_of(number, turn), session_id="s")
    theirs, ours = ([_without_results(event.content) for event in kept] for kept in (log, own.events("s")))
    assert theirs == ours
    assert [_shape(prompt) for prompt in prompts] == [_shape(prompt) for prompt in model.prompts]
    for prompt in prompts:
        check_prompt(prompt.messages)


def _without_results(message: Message) -> object:
    """Hosts word results in their own way."""
    return [result.id for result in message.results] if isinstance(message, ToolMessage) else message


def _shape(prompt: Prompt) -> list[object]:
    return [_without_results(message) for message in prompt.messages]


def test_a_compacted_session_is_not_told_twice_to_a_host_that_keeps_everything() -> None:
    """Its transcript reaches behind the run: it brings its own history, and the summary would say it again."""
    service = SessionService.open("memory:")
    at_length = "one, and much more " * 40
    model = ScriptedModel([at_length, "two", "three"])
    host = Host(SessionAdvisors(service).memory, model, lambda: {SESSION_ID: "s"}, keeps=True)
    turn = ScriptedTurn(users=1, batches=(), fails_in=None)
    host.ask(users_of(0, turn))
    host.ask(users_of(1, turn))
    strategy = SummarizingCompactionStrategy(lambda _: "Zero and one.", WindowCompactionStrategy(last_turns=1))
    assert not service.compact("s", strategy).is_unchanged
    host.ask(users_of(2, turn))
    assert [message.text for message in model.prompts[-1].messages] == [
        "request 0 part 0",
        at_length,
        "request 1 part 0",
        "two",
        "request 2 part 0",
    ]
    assert len(service.events("s", EventFilter.real_only())) == 6
