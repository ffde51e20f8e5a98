"""H-12: sub-agents run on branches of their own, inside the turn of whoever called them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.chat._async.talking import Talk
from tests.chat.guarding import check_pairing
from tests.chat.speaking import asks, line, prompts
from turnlog import AsyncSessionService, EventFilter, InvalidValueError, SessionBusyError, Turn, UserMessage
from turnlog.chat import AsyncChatClient, AsyncSessionAdvisors, ToolContext
from turnlog.chat.holding import ACTIVE
from turnlog.models.protocol import Prompt
from turnlog.models.scripted import AsyncScriptedModel
from turnlog.testing.factories import assistant, calls, results, user


def echo(prompt: Prompt) -> str:
    """A sub-agent's model: it says what it was told last."""
    return f"done: {line(prompt.messages[-1])}"


class Agents:
    """A root agent whose tool asks a sub-agent, which may ask one of its own."""

    def __init__(self, service: AsyncSessionService, *said: object, depth: int = 1) -> None:
        self.service = service
        self.advisors = AsyncSessionAdvisors(service)
        self.sub_model = AsyncScriptedModel([echo] * 20)
        self.depth = depth
        self.talk = Talk(service, *said, tools=[self.delegate])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        self.tokens: list[str | None] = []

    async def delegate(self, key: str, context: ToolContext) -> str:
        """Let another agent do it."""
        branch = f"{context.context.get('turnlog_branch') or 'orch'}.{key}"
        self.tokens.append(context.turn)
        client = AsyncChatClient(self.sub_model, advisors=self.advisors, tools=[self.delegate])
        if branch.count(".") < self.depth:
            client = AsyncChatClient(
                AsyncScriptedModel([asks("deep", name="delegate"), "deeply done"]),
                advisors=self.advisors,
                tools=[self.delegate],
            )
        return (await client.call(f"do {key}", session_id="s", branch=branch)).text


async def test_what_a_sub_agent_says_is_stored_on_its_branch(service: AsyncSessionService) -> None:
    agents = Agents(service, asks("a", name="delegate"), "all done")
    await agents.talk.client.call("go", session_id="s")
    assert await agents.talk.log() == [
        *("user: go", "assistant: calls a"),
        *("[orch.a] user: do a", "[orch.a] assistant: done: user: do a"),
        *("tool a: done: user: do a", "assistant: all done"),
    ]


async def test_a_sub_agent_sees_its_ancestors_and_not_their_open_call(
    service: AsyncSessionService, caplog: pytest.LogCaptureFixture
) -> None:
    """The call that it answers is open on root: left out, and no warning is due."""
    agents = Agents(service, "0", asks("a", name="delegate"), "all done")
    await agents.talk.client.call("before", session_id="s")
    await agents.talk.client.call("go", session_id="s")
    assert prompts(agents.sub_model.prompts) == [["user: before", "assistant: 0", "user: go", "user: do a"]]
    assert not caplog.records


async def test_the_roots_prompts_hold_nothing_of_theirs(service: AsyncSessionService) -> None:
    """B137: neither in the same turn nor in the next."""
    agents = Agents(service, asks("a", "b", name="delegate"), "all done", "2")
    await agents.talk.client.call("go", session_id="s")
    await agents.talk.client.call("and?", session_id="s")
    root = ["user: go", "assistant: calls a, b", "tool a: done: user: do a", "tool b: done: user: do b"]
    assert agents.talk.prompts[1:] == [root, [*root, "assistant: all done", "user: and?"]]


async def test_sub_agents_side_by_side_do_not_see_each_other(service: AsyncSessionService) -> None:
    """Siblings are hidden; each has its own branch, all are part of one turn."""
    names = [f"n{number}" for number in range(6)]
    agents = Agents(service, asks(*names, name="delegate"), "all done")
    await agents.talk.client.call("go", session_id="s")
    assert sorted(prompts(agents.sub_model.prompts)) == sorted([["user: go", f"user: do {name}"] for name in names])
    assert len(set(agents.tokens)) == 1
    log = await agents.talk.log()
    assert len(log) == 2 + 2 * 6 + 6 + 1
    assert log[-7:-1] == [f"tool {name}: done: user: do {name}" for name in names]


async def test_agents_nested_twice(service: AsyncSessionService, caplog: pytest.LogCaptureFixture) -> None:
    """A sub-agent's sub-agent sees its ancestors on the way up, whose calls are all open."""
    agents = Agents(service, asks("a", name="delegate"), "all done", depth=2)
    await agents.talk.client.call("go", session_id="s")
    assert await agents.talk.log() == [
        *("user: go", "assistant: calls a"),
        *("[orch.a] user: do a", "[orch.a] assistant: calls deep"),
        *("[orch.a.deep] user: do deep", "[orch.a.deep] assistant: done: user: do deep"),
        *("[orch.a] tool deep: done: user: do deep", "[orch.a] assistant: deeply done"),
        *("tool a: deeply done", "assistant: all done"),
    ]
    assert prompts(agents.sub_model.prompts) == [["user: go", "user: do a", "user: do deep"]]
    assert not caplog.records
    assert len(set(agents.tokens)) == 1


async def test_a_sub_agent_that_is_called_in_every_turn(
    service: AsyncSessionService, caplog: pytest.LogCaptureFixture
) -> None:
    """Its own words come between root's calls and their results: they are left out of its prompt, without a warning."""
    agents = Agents(service, *[asks("a", name="delegate"), "all done"] * 3)
    for _ in range(3):
        await agents.talk.client.call("go", session_id="s")
    for prompt in agents.sub_model.prompts:
        check_pairing(prompt.messages)
    assert prompts(agents.sub_model.prompts)[1] == [
        *("user: go", "user: do a", "assistant: done: user: do a", "assistant: all done"),
        *("user: go", "user: do a"),
    ]
    assert not caplog.records


async def test_a_dead_call_of_its_own_branch_is_warned_of(
    service: AsyncSessionService, caplog: pytest.LogCaptureFixture
) -> None:
    await service.create("s")
    await service.append("s", [user(1), user(2, branch="x"), calls(3, "c1", branch="x"), assistant(4)])
    await Talk(service, "1").client.call("go", session_id="s", branch="x")
    assert len(caplog.records) == 1
    assert "positions 3 are" in caplog.text


async def test_a_filter_may_say_which_branches_are_seen(service: AsyncSessionService) -> None:
    """H-12: unless a filter sets one."""
    await service.create("s")
    await service.append("s", [user(1, "root's"), assistant(2, "1"), user(3, "x's", branch="x"), assistant(4, "2")])
    talk = Talk(service, "3", "4")
    await talk.client.call("go", session_id="s", event_filter=EventFilter.for_branch("x"))
    await talk.client.call("go", session_id="s", branch="y", event_filter=EventFilter.for_branch(None))
    assert talk.prompts[0] == ["user: root's", "assistant: 1", "user: x's", "assistant: 2", "user: go"]
    assert "user: x's" not in talk.prompts[1]


@pytest.mark.parametrize("wrong", ["a..b", ".a", "", 7])
async def test_a_branch_is_a_path(service: AsyncSessionService, wrong: str) -> None:
    with pytest.raises(InvalidValueError, match="branch"):
        await Talk(service, "never").client.call("go", session_id="s", branch=wrong)


async def test_a_call_on_a_branch_that_its_own_caller_holds_is_an_error(service: AsyncSessionService) -> None:
    """It would wait for itself. The model is told, as of any failure of a tool."""
    advisors = AsyncSessionAdvisors(service)

    async def recurse(key: str) -> str:
        client = AsyncChatClient(AsyncScriptedModel(["never"]), advisors=advisors)
        return (await client.call(key, session_id="s")).text

    talk = Talk(service, asks("a", name="recurse"), "done", tools=[recurse])
    await talk.client.call("go", session_id="s")
    log = await talk.log()
    assert log[2].startswith("tool a: InvalidValueError: a call on session 's' is made from inside a call on the same")
    assert len(log) == 4


async def test_so_is_one_on_an_ancestors_branch(service: AsyncSessionService) -> None:
    advisors = AsyncSessionAdvisors(service)

    async def back_to_root(key: str) -> str:
        client = AsyncChatClient(AsyncScriptedModel(["never"]), advisors=advisors)
        return (await client.call(key, session_id="s")).text

    async def go_down(key: str) -> str:
        model = AsyncScriptedModel([asks("b", name="back_to_root"), "down"])
        client = AsyncChatClient(model, advisors=advisors, tools=[back_to_root])
        return (await client.call(key, session_id="s", branch="x")).text

    talk = Talk(service, asks("a", name="go_down"), "done", tools=[go_down])
    await talk.client.call("go", session_id="s")
    refused = [said for said in await talk.log() if "InvalidValueError" in said]
    assert [said.partition(": ")[0] for said in refused] == ["[x] tool b"]


async def test_a_sub_agent_may_have_a_session_of_its_own(service: AsyncSessionService) -> None:
    """Another session is another turn, on any branch."""
    advisors = AsyncSessionAdvisors(service)

    async def ask_elsewhere(key: str, context: ToolContext) -> str:
        client = AsyncChatClient(AsyncScriptedModel([f"{context.turn} {key}"]), advisors=advisors)
        return (await client.call(key, session_id="other")).text

    talk = Talk(service, asks("a", name="ask_elsewhere"), "done", tools=[ask_elsewhere])
    await talk.client.call("go", session_id="s")
    assert len(await talk.log()) == 4
    assert len(await talk.log("other")) == 2


async def test_a_turn_is_joined_by_its_token(service: AsyncSessionService) -> None:
    """As another process does, which has no context variable: ``turn=``."""
    await service.create("s")
    await service.append("s", [user(1), calls(2, "a")], turn=Turn("held", take=True))
    talk = Talk(service, "done")
    await talk.client.call("do a", session_id="s", branch="x", turn="held")
    await service.append("s", [results(5, "a"), assistant(6)], turn=Turn("held"))
    assert (await talk.log())[2:4] == ["[x] user: do a", "[x] assistant: done"]


async def test_without_the_token_a_held_session_is_busy(service: AsyncSessionService) -> None:
    hasty = AsyncSessionService(service.repository, turn_wait=timedelta())
    await hasty.create("s")
    await hasty.append("s", user(1), turn=Turn("held", take=True))
    with pytest.raises(SessionBusyError):
        await Talk(hasty, "never").client.call("go", session_id="s", branch="x")
    assert await hasty.version("s") == 1


async def test_the_token_of_a_finished_turn_starts_a_turn_of_its_own(service: AsyncSessionService) -> None:
    """Nothing refuses what a finished turn has left running, and it holds the session while it runs."""
    tokens: list[str | None] = []

    def note(key: str, context: ToolContext) -> str:
        tokens.append(context.turn)
        return key

    talk = Talk(service, asks("a", name="note"), "1", asks("b", name="note"), "2", tools=[note])
    await talk.client.call("go", session_id="s")
    await talk.client.call("later", session_id="s", branch="x", turn=tokens[0])
    assert tokens[0] != tokens[1]
    assert (await talk.log())[4:] == ["[x] user: later", "[x] assistant: calls b", "[x] tool b: b", "[x] assistant: 2"]
    await service.append_message("s", UserMessage("free again"))


async def test_the_turn_is_given_back_however_the_call_ends(service: AsyncSessionService) -> None:
    """H-11: others may write at once."""
    hasty = AsyncSessionService(service.repository, turn_wait=timedelta())
    talk = Talk(hasty, "1", ConnectionError(), asks("a", name="stop"), tools=[])
    await talk.client.call("a", session_id="s")
    await hasty.append_message("s", UserMessage("between"))
    with pytest.raises(ConnectionError):
        await talk.client.call("b", session_id="s")
    await hasty.append_message("s", UserMessage("between"))
    with pytest.raises(InvalidValueError):
        await talk.client.call("c", session_id="s")
    await hasty.append_message("s", UserMessage("between"))
    assert ACTIVE.get() is None
