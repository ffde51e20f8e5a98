"""H-13, C-8, H-9: which threads do the work of a sync client, and what they see."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from datetime import timedelta
from typing import Any

import pytest

from tests.chat._sync.talking import Talk
from tests.chat.guarding import check_pairing
from tests.chat.speaking import asks, lines, logged, look_up
from turnlog import SessionService, open_store
from turnlog.chat import (
    ChatClient,
    ChatStream,
    SessionAdvisors,
    ToolContext,
    ToolRequest,
)
from turnlog.chat.advisor import NextToolCall
from turnlog.chat.holding import Place
from turnlog.compaction import TurnCountTrigger, WindowCompactionStrategy
from turnlog.errors import InvalidReplyError, SessionBusyError
from turnlog.log.messages import ToolResult
from turnlog.models.protocol import Delta, Prompt, Reply, StreamItem
from turnlog.models.scripted import Line, ScriptedModel

#: So long a test waits for what must happen; only a failing one waits it out.
PATIENCE = 20.0
LONG = "so much was said " * 50
TENANT: ContextVar[str] = ContextVar("tenant", default="nobody")


@pytest.fixture
def service() -> Iterator[SessionService]:
    with SessionService(open_store("memory:"), turn_wait=timedelta()) as opened:
        yield opened


class Watched:
    """A repository that notes which threads its methods run in."""

    def __init__(self, repository: Any) -> None:
        self._repository = repository
        self.threads: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._repository, name)
        if not callable(found):
            return found

        def noted(*given: Any, **options: Any) -> Any:
            self.threads.add(threading.current_thread().name)
            return found(*given, **options)

        return noted


class Streaming(ScriptedModel):
    """Notes which threads its streams are read in."""

    def __init__(self, lines: Iterable[Line]) -> None:
        super().__init__(lines)
        self.threads: set[str] = set()

    def stream(self, prompt: Prompt) -> Iterator[StreamItem]:
        self.threads.add(threading.current_thread().name)
        yield from super().stream(prompt)


def in_thread(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize("background", [False, True])
def test_no_session_work_runs_where_the_models_stream_is_read(
    service: SessionService,
    background: bool,  # noqa: FBT001 - parametrized
) -> None:
    """Seed 004: reads, writes, the making of the reply, and the compaction run elsewhere."""
    watched: Any = Watched(service.repository)
    model = Streaming([LONG, asks("c1"), LONG])
    advisors = SessionAdvisors(
        SessionService(watched),
        compaction_trigger=TurnCountTrigger(2),
        compaction_strategy=WindowCompactionStrategy(last_turns=1),
        async_compaction=background,
    )
    client = ChatClient(model, advisors=advisors, tools=[look_up])
    for said in "ab":
        with client.stream(said, session_id="s") as stream:
            list(stream)
    assert advisors.close()
    assert [event for event in service.events("s") if event.is_boundary]
    assert model.threads == {threading.current_thread().name}
    assert not watched.threads & model.threads
    expected = {"turnlog-stream"} if not background else {"turnlog-stream", "turnlog-compaction_0"}
    assert watched.threads == expected


def test_an_executor_replaces_the_threads(service: SessionService) -> None:
    """Of streams, and of compactions."""
    watched: Any = Watched(service.repository)
    with ThreadPoolExecutor(1, "mine") as executor:
        advisors = SessionAdvisors(
            SessionService(watched),
            compaction_trigger=TurnCountTrigger(2),
            compaction_strategy=WindowCompactionStrategy(last_turns=1),
            async_compaction=True,
            executor=executor,
        )
        client = ChatClient(ScriptedModel(["1", "2"]), advisors=advisors, executor=executor)
        for said in "ab":
            with client.stream(said, session_id="s") as stream:
                assert stream.result().text
        assert advisors.close()
    assert watched.threads == {"mine_0"}
    assert [event for event in service.events("s") if event.is_boundary]


def test_an_executor_that_is_shut_down_is_an_error_and_no_wait(service: SessionService) -> None:
    executor = ThreadPoolExecutor(1)
    executor.shutdown()
    stream = ChatClient(ScriptedModel(["1"]), advisors=SessionAdvisors(service), executor=executor).stream(
        "a", session_id="s"
    )
    with pytest.raises(RuntimeError, match="shutdown"):
        next(stream)
    stream.close()


def test_a_stream_whose_executor_is_shut_down_before_it_begins_is_over(service: SessionService) -> None:
    go_on = threading.Event()
    executor = ThreadPoolExecutor(1)
    executor.submit(go_on.wait, PATIENCE)
    client = ChatClient(ScriptedModel(["never"]), advisors=SessionAdvisors(service), executor=executor)
    with client.stream("a", session_id="s") as stream:
        executor.shutdown(wait=False, cancel_futures=True)
        with pytest.raises(InvalidReplyError, match="left before it had ended"):
            stream.result()
    go_on.set()
    executor.shutdown()
    assert not service.list().sessions


def test_the_callers_context_variables_are_seen_everywhere(service: SessionService) -> None:
    """In tools, side by side and alone, in advisors, in streams; H-13."""
    seen: list[str] = []

    def note(key: str) -> str:
        seen.append(f"{key} {TENANT.get()}")
        return key

    class Noting:
        def around_tool_call(self, request: ToolRequest, call_next: NextToolCall) -> ToolResult:
            seen.append(f"advisor {TENANT.get()}")
            return call_next(request)

    model = ScriptedModel([asks("a", "b", name="note"), asks("c", name="note"), "done"])
    client = ChatClient(model, advisors=[*SessionAdvisors(service), Noting()], tools=[note])
    token = TENANT.set("ada")
    stream = client.stream("hi", session_id="s")
    TENANT.reset(token)
    with stream:
        stream.result()
    assert sorted(seen) == ["a ada", *["advisor ada"] * 3, "b ada", "c ada"]


class TestSideBySide:
    def test_tools_of_one_reply_run_at_the_same_time(self) -> None:
        """Each waits for all of them."""
        together = threading.Barrier(4)

        def meet(key: str) -> str:
            together.wait(PATIENCE)
            return key

        model = ScriptedModel([asks(*"abcd", name="meet"), "done"])
        ChatClient(model, tools=[meet]).call("hi")
        assert lines(model.prompts[1].messages[2:]) == [f"tool {key}: {key}" for key in "abcd"]

    def test_no_more_than_the_cap(self) -> None:
        """They meet in pairs; more than two would be seen before a pair parts."""
        running: list[str] = []
        most: list[int] = []
        lock, pair = threading.Lock(), threading.Barrier(2)

        def work(key: str) -> str:
            with lock:
                running.append(key)
                most.append(len(running))
            pair.wait(PATIENCE)
            with lock:
                running.remove(key)
            return key

        ChatClient(ScriptedModel([asks(*"abcdefgh", name="work"), "done"]), tools=[work], tools_at_once=2).call("hi")
        assert len(most) == 8
        assert max(most) <= 2

    def test_when_an_advisor_raises_what_has_not_begun_does_not_begin(self) -> None:
        begun: list[str] = []

        class Strict:
            def around_tool_call(self, request: ToolRequest, call_next: NextToolCall) -> ToolResult:
                begun.append(request.call.id)
                if request.call.id == "a":
                    raise PermissionError
                return call_next(request)

        client = ChatClient(ScriptedModel([asks(*"abcdefgh")]), advisors=[Strict()], tools=[look_up], tools_at_once=1)
        with pytest.raises(PermissionError):
            client.call("hi")
        assert begun[0] == "a"
        assert len(begun) < 8


def left_by(stream: ChatStream) -> threading.Event:
    """Set as soon as the stream is left."""
    left = threading.Event()
    handover: Any = stream._call.handover
    leave = handover.leave

    def leaving() -> None:
        leave()
        left.set()

    handover.leave = leaving
    return left


class TestClosingFromAnotherThread:
    """A button that says stop: whoever reads is told, and the log is one that the next turn can use."""

    def test_while_tools_run(self, service: SessionService) -> None:
        running, go_on = threading.Event(), threading.Event()

        def work(key: str) -> str:
            running.set()
            assert go_on.wait(PATIENCE)
            return f"worked on {key}"

        talk = Talk(service, asks("c1", name="work"), "never", "2", tools=[work])
        raised: list[BaseException] = []
        stream = talk.client.stream("hi", session_id="s")

        def read() -> None:
            try:
                list(stream)
            except InvalidReplyError as error:
                raised.append(error)

        reader = in_thread(read)
        assert running.wait(PATIENCE)
        is_left = left_by(stream)
        closer = in_thread(stream.close)
        assert is_left.wait(PATIENCE)
        go_on.set()
        for thread in (reader, closer):
            thread.join(PATIENCE)
            assert not thread.is_alive()
        assert "left before it had ended" in str(raised[0])
        assert talk.log() == ["user: hi", "assistant: calls c1", "tool c1: worked on c1"]
        talk.client.call("and?", session_id="s")
        check_pairing(talk.model.prompts[-1].messages)

    def test_while_deltas_come(self, service: SessionService) -> None:
        reading, go_on = threading.Event(), threading.Event()

        class Slow:
            def generate(self, prompt: Prompt) -> Reply:
                raise AssertionError(prompt)

            def stream(self, prompt: Prompt) -> Iterator[StreamItem]:
                assert prompt.messages
                yield Delta("one")
                reading.set()
                assert go_on.wait(PATIENCE)
                yield Delta("two")
                raise AssertionError("nobody reads any more")

        client = ChatClient(Slow(), advisors=SessionAdvisors(service, store_partial_replies=True))
        stream = client.stream("hi", session_id="s")
        heard: list[str] = []

        def read() -> None:
            with pytest.raises(InvalidReplyError):
                heard.extend(delta.text for delta in stream)

        reader = in_thread(read)
        assert reading.wait(PATIENCE)
        is_left = left_by(stream)
        closer = in_thread(stream.close)
        assert is_left.wait(PATIENCE)
        go_on.set()
        for thread in (reader, closer):
            thread.join(PATIENCE)
            assert not thread.is_alive()
        assert logged(service.events("s")) == ["user: hi", "assistant: onetwo"]
        with pytest.raises(InvalidReplyError):
            stream.result()


def test_what_a_finished_call_has_left_running_begins_a_turn_of_its_own(service: SessionService) -> None:
    """H-12: with the context of the finished call, on the same branch; it is neither an error nor part of that turn."""
    go_on = threading.Event()
    tokens: list[str | None] = []
    left: list[threading.Thread] = []
    talk = Talk(service, asks("c1", name="leave"), "1", "2")

    def later() -> None:
        assert go_on.wait(PATIENCE)
        tokens.append(talk.client.call("later", session_id="s").text)

    def leave(key: str) -> str:
        context = copy_context()
        left.append(in_thread(lambda: context.run(later)))
        return key

    talk.client.call("go", session_id="s", tools=[leave])
    go_on.set()
    left[0].join(PATIENCE)
    assert tokens == ["2"]
    assert talk.log()[-2:] == ["user: later", "assistant: 2"]


def test_a_forked_child_holds_no_place_of_its_parents() -> None:
    """A server that forks while a call runs: the call goes on in the parent alone."""
    store = object()
    place = Place(store, "s", None, None, 0)
    place.enter()
    child = os.fork()
    if not child:
        try:
            Place(store, "s", None, None, 0).enter()
        except BaseException:  # noqa: BLE001 - a child must not go on with the tests
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    with pytest.raises(SessionBusyError):
        Place(store, "s", None, None, 0).enter()
    place.leave()
    Place(store, "s", None, None, 0).enter()


def test_a_token_without_its_context_does_not_share_the_holders_branch(service: SessionService) -> None:
    """H-12: one call at a time per branch, though nothing says here that the second is made from inside the first."""
    refused: list[str] = []
    talk = Talk(service, asks("c1", name="intrude"), "1", "2")

    def intrude(key: str, context: ToolContext) -> str:
        def call() -> None:
            with pytest.raises(SessionBusyError):
                talk.client.call("me too", session_id="s", turn=context.turn)
            refused.append(talk.client.call("me too", session_id="s", turn=context.turn, branch="x").text)

        in_thread(call).join(PATIENCE)
        return key

    talk.client.call("go", session_id="s", tools=[intrude])
    assert refused == ["1"]
    assert talk.log()[2:] == ["[x] user: me too", "[x] assistant: 1", "tool c1: c1", "assistant: 2"]


async def test_a_sync_client_works_where_a_loop_runs(service: SessionService) -> None:
    """As in a notebook: it does not use the loop."""
    talk = Talk(service, "1", "2")
    assert talk.client.call("hi", session_id="s").text == "1"
    with talk.client.stream("and?", session_id="s") as stream:
        assert stream.result().text == "2"


def test_a_stream_is_an_iterator_and_a_context_manager(service: SessionService) -> None:
    stream = Talk(service, "hello").client.stream("hi", session_id="s")
    assert isinstance(stream, ChatStream)
    with stream as entered:
        assert entered is stream
        assert iter(stream) is stream
        assert next(stream) == Delta("hello")
        assert next(stream, None) is None
