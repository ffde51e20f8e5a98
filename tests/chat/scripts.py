"""Random conversations: what the model asks, how tools and stores fail, and how a caller goes on (H-4, H-7, H-8)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

from hypothesis import strategies as st
from msgspec import Struct

from turnlog import open_async_store, open_store
from turnlog.chat import (
    AsyncChatClient,
    AsyncSessionAdvisors,
    ChatClient,
    ChatResult,
    Limits,
    OnBreach,
    SessionAdvisors,
    Tool,
    ToolError,
    tool,
)
from turnlog.errors import TurnlogError
from turnlog.log.events import SessionEvent
from turnlog.log.messages import AssistantMessage, Message, ToolCall, UserMessage
from turnlog.models.protocol import Prompt
from turnlog.models.scripted import AsyncScriptedModel, Line, ScriptedModel
from turnlog.service import AsyncSessionService, SessionService
from turnlog.testing.clocks import SteppedClock
from turnlog.testing.faults import CallFault, FaultyCalls, with_faults

#: What a call of the model may be: a tool that works, fails in its ways, ends the turn, or is none.
KINDS = ("works", "fails", "says_why", "direct", "missing", "bad_arguments", "no_json")
LAST_WORDS = "And that is the end."


class Turn(Struct, frozen=True):
    """One request: the user's messages, the batches that the model asks for, and in which round it fails at first."""

    users: int
    batches: tuple[tuple[str, ...], ...]
    fails_in: int | None
    #: Deltas of the last reply after which a caller leaves the stream; None: never.
    leaves_after: int | None = None


class Script(Struct, frozen=True):
    """A conversation, its limits, and the call on the store that fails."""

    turns: tuple[Turn, ...]
    limits: Limits
    fault: CallFault | None


class ModelFailedError(Exception):
    """The provider is not reachable."""


def scripts(*, leaving: bool = False) -> st.SearchStrategy[Script]:
    """Conversations of up to three requests; with ``leaving`` some streams are left."""
    batches = st.lists(st.lists(st.sampled_from(KINDS), min_size=1, max_size=3).map(tuple), max_size=3).map(tuple)
    turns = st.builds(
        Turn,
        users=st.integers(1, 2),
        batches=batches,
        fails_in=st.none() | st.integers(0, 2),
        leaves_after=st.none() | st.integers(0, 3) if leaving else st.none(),
    )
    limits = st.just(Limits()) | st.builds(
        Limits,
        rounds=st.integers(1, 3),
        calls=st.integers(1, 5),
        calls_per_tool=st.integers(1, 3),
        on_breach=st.sampled_from(OnBreach),
    )
    faults = st.none() | st.builds(CallFault, number=st.integers(1, 25), takes_effect=st.booleans())
    return st.builds(Script, turns=st.lists(turns, min_size=1, max_size=3).map(tuple), limits=limits, fault=faults)


class Play:
    """What came of a script: the log, every prompt, and how each call ended."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.log: list[SessionEvent] = []
        self.prompts: list[Prompt] = []
        self.endings: list[str] = []
        self._failed: set[int] = set()

    def line(self, prompt: Prompt) -> AssistantMessage:
        """What the model says to a prompt: it goes by what it sees, as models do."""
        self.prompts.append(prompt)
        said = list(prompt.messages)
        last_user = max(index for index, message in enumerate(said) if isinstance(message, UserMessage))
        number = int(said[last_user].text.split()[1]) if said[last_user].text != LAST_WORDS else -1
        round_ = sum(isinstance(message, AssistantMessage) for message in said[last_user:])
        if number < 0:
            return AssistantMessage("Goodbye.")
        turn = self.script.turns[number]
        if turn.fails_in == round_ and number not in self._failed:
            self._failed.add(number)
            raise ModelFailedError
        if round_ < len(turn.batches) and prompt.tools:
            return AssistantMessage(None, tool_calls=[call_of(i, kind) for i, kind in enumerate(turn.batches[round_])])
        return AssistantMessage(f"Reply to request {number}, in round {round_}.")

    def lines(self) -> list[Line]:
        """Enough of them for a model."""
        return [self.line] * 200


def call_of(index: int, kind: str) -> ToolCall:
    """Ids are used again in every round, as some models do."""
    match kind:
        case "missing":
            return ToolCall(f"c{index}", "missing", "{}")
        case "bad_arguments":
            return ToolCall(f"c{index}", "works", '{"text": 5}')
        case "no_json":
            return ToolCall(f"c{index}", "works", '{"text": ')
        case _:
            return ToolCall(f"c{index}", kind, '{"text": "x"}')


def works(text: str) -> str:
    """Say it again."""
    return text


def fails(text: str) -> str:
    """Fail."""
    raise RuntimeError(text)


def says_why(text: str) -> str:
    """Fail, and say why."""
    raise ToolError(text)


def tools() -> list[Tool]:
    """All that a script may call."""
    return [tool(works), tool(fails), tool(says_why), tool(works, name="direct", return_direct=True)]


def users_of(number: int, turn: Turn) -> list[Message]:
    return [UserMessage(f"request {number} part {part}") for part in range(turn.users)]


def _clock() -> SteppedClock:
    """A turn that was not given back is free soon: nobody waits for real seconds."""
    return SteppedClock(step=timedelta(seconds=2))


#: Attempts at one request before a caller gives up.
ATTEMPTS = 4


def play(script: Script, *, is_stream: bool, url: str = "memory:") -> Play:
    """Play it with threads, on a session that is new."""
    made = Play(script)
    calls = FaultyCalls(*([] if script.fault is None else [script.fault]))
    with open_store(url, clock=_clock()) as store:
        store.delete("s")
        service = SessionService(with_faults(store, calls))
        client = ChatClient(
            ScriptedModel(made.lines()), advisors=SessionAdvisors(service), tools=tools(), limits=script.limits
        )

        def ask(said: list[Message], run_id: str, leaves_after: int | None) -> ChatResult | None:
            if not is_stream:
                return client.call(said, session_id="s", run_id=run_id)
            with client.stream(said, session_id="s", run_id=run_id) as stream:
                for count, _ in enumerate(stream):
                    if count == leaves_after:
                        return None
                return stream.result()

        for number, turn in enumerate(script.turns):
            leaves_after = turn.leaves_after
            for _ in range(ATTEMPTS):
                try:
                    result = ask(users_of(number, turn), f"run-{number}", leaves_after)
                except (ModelFailedError, TurnlogError) as error:
                    made.endings.append(type(error).__name__)
                    continue
                made.endings.append("left" if result is None else str(result.outcome))
                if result is not None:
                    break
                leaves_after = None
        calls.heal()
        made.endings.append(str(client.call(LAST_WORDS, session_id="s").outcome))
        made.log = store.events("s")
    return made


def play_in_tasks(script: Script, *, is_stream: bool, url: str = "memory:") -> Play:
    """Play it with tasks, on a session that is new."""
    return asyncio.run(_played_in_tasks(script, is_stream=is_stream, url=url))


async def _played_in_tasks(script: Script, *, is_stream: bool, url: str) -> Play:
    made = Play(script)
    calls = FaultyCalls(*([] if script.fault is None else [script.fault]))
    async with open_async_store(url, clock=_clock()) as store:
        await store.delete("s")
        service = AsyncSessionService(with_faults(store, calls))
        client = AsyncChatClient(
            AsyncScriptedModel(made.lines()),
            advisors=AsyncSessionAdvisors(service),
            tools=tools(),
            limits=script.limits,
        )

        async def ask(said: list[Message], run_id: str, leaves_after: int | None) -> ChatResult | None:
            if not is_stream:
                return await client.call(said, session_id="s", run_id=run_id)
            async with client.stream(said, session_id="s", run_id=run_id) as stream:
                count = 0
                async for _ in stream:
                    if count == leaves_after:
                        return None
                    count += 1
                return await stream.result()

        for number, turn in enumerate(script.turns):
            leaves_after = turn.leaves_after
            for _ in range(ATTEMPTS):
                try:
                    result = await ask(users_of(number, turn), f"run-{number}", leaves_after)
                except (ModelFailedError, TurnlogError) as error:
                    made.endings.append(type(error).__name__)
                    continue
                made.endings.append("left" if result is None else str(result.outcome))
                if result is not None:
                    break
                leaves_after = None
        calls.heal()
        made.endings.append(str((await client.call(LAST_WORDS, session_id="s")).outcome))
        made.log = await store.events("s")
    return made


async def cancelled_at(step: int, work: Callable[[], Awaitable[Any]]) -> bool:
    """Begin the work, let the event loop turn ``step`` times, cancel it, and wait; whether it was cut short."""
    task = asyncio.ensure_future(work())
    for _ in range(step):
        await asyncio.sleep(0)
    task.cancel()
    with suppress(asyncio.CancelledError, TurnlogError, ModelFailedError):
        await task
    return task.cancelled()
