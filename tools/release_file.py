"""Writes the file that a release leaves for the tests of all later ones: ``python -m tools.release_file 0.1.0``.

It holds one event of every kind. ``tests/migrations/test_releases.py`` reads each such file and compares it with the
export beside it, which is written here too.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from turnlog import (
    AssistantMessage,
    EventMetadata,
    EventType,
    MediaPart,
    Message,
    Native,
    ReasoningPart,
    SessionEvent,
    SessionService,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    ToolStatus,
    UserMessage,
    open_store,
)
from turnlog.compaction import SummarizingCompactionStrategy, WindowCompactionStrategy
from turnlog.formats import portable

FOLDER = Path(__file__).resolve().parents[1] / "tests" / "migrations" / "files"
START = datetime(2026, 11, 30, 12, tzinfo=UTC)


class Clock:
    """A second later at each look, so that the file is the same whenever it is written."""

    def __init__(self) -> None:
        self._now = START

    def __call__(self) -> datetime:
        """The next second."""
        self._now += timedelta(seconds=1)
        return self._now


def events() -> list[SessionEvent]:
    """One event of every kind that an application appends."""
    odd = "NUL \x00, lone \ud800, pair \ud83d\ude00, joined 👩‍👩‍👧, café"
    picture = MediaPart(media_type="image/png", data=b"\x89PNG\xff", name="dot.png")
    messages: list[Message] = [
        SystemMessage("Be brief."),
        UserMessage((TextPart("Look:"), picture), metadata={"deep": {"list": [1, 1.0, True, None, odd]}}),
        AssistantMessage((ReasoningPart(text="hm", signature="c2ln"), TextPart("A dot.", refusal=False))),
        UserMessage("And now?"),
        AssistantMessage(None, tool_calls=(ToolCall("c1", "look", '{"up": 1}'), ToolCall("c2", "look", "not JSON"))),
        ToolMessage((ToolResult("c1", "found"), ToolResult("c2", "failed", ToolStatus.ERROR, "look"))),
        AssistantMessage("", native=Native("openai-chat", {"role": "assistant", "content": ""})),
        UserMessage(odd),
    ]
    made = [
        SessionEvent(
            session_id="whole", id=f"event-{number}", message=message, timestamp=START + timedelta(minutes=number)
        )
        for number, message in enumerate(messages)
    ]
    progress = EventType.of("EXAMPLE.PROGRESS")
    made.insert(3, SessionEvent(session_id="whole", id="own", type=progress, payload={"done": 0.5}, timestamp=START))
    made.append(
        SessionEvent(
            session_id="whole",
            id="0197f7a0-1111-7222-8333-444455556666",
            message=AssistantMessage("From a branch."),
            branch="orch.researcher",
            metadata={EventMetadata.RUN_ID: "run-1"},
            timestamp=START,
        )
    )
    return made


def write(release: str) -> None:
    """The file, and its export."""
    path = FOLDER / f"{release}.db"
    path.unlink(missing_ok=True)
    store = open_store(str(path), clock=Clock(), indexed_metadata=("team",))
    with SessionService(store, allow_system_messages=True) as service:
        service.create("whole", principal="ada", metadata={"team": "blue"})
        service.create("brief", expires_at=datetime(2999, 1, 1, tzinfo=UTC))
        service.create("sliding", time_to_live=timedelta(days=365_000))
        appended = events()
        service.append("whole", appended[:1])
        for event in appended[1:4]:
            service.append("whole", event)
        service.append("whole", appended[4:])
        summarizing = SummarizingCompactionStrategy(lambda _: "Dots.", WindowCompactionStrategy(last_turns=1), 0)
        service.compact("whole", summarizing)
        service.append_message("whole", UserMessage("After it."), event_id="after")
        service.rewind("whole", 5)
        service.clear("whole")
        with (FOLDER / f"{release}.jsonl").open("wb") as file:
            for session in service.list():
                for line in portable.write(session, store.version(session.id), store.iter_batches(session.id)):
                    file.write(line)
    for leftover in FOLDER.glob(f"{release}.db-*"):
        leftover.unlink()


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    write(sys.argv[1])
