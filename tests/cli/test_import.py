"""``turnlog import``: every form of file, ids that make an import a replay, nothing written by half."""

from __future__ import annotations

import gzip
import json
import os
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conversations import TRIP, assistant, tool, user
from tests.cli.running import CommandLine
from turnlog.cli.importing.conversation_logs import event_id_of
from turnlog.cli.importing.importer import Importer
from turnlog.cli.importing.sources import Source
from turnlog.formats.openai_chat import render
from turnlog.storage.opening import open_store

FileOf = Callable[..., Path]

SHORT = [user("hi"), assistant("hello")]


def stored(turnlog: CommandLine) -> dict[str, list[dict[str, Any]]]:
    """What the store holds, by session, as OpenAI messages."""
    with open_store(str(turnlog.store)) as repository:
        return {
            session.id: render(event.content for event in repository.events(session.id))
            for session in repository.list(limit=100)
        }


def batches(turnlog: CommandLine, session_id: str) -> list[int]:
    with open_store(str(turnlog.store)) as repository:
        return [len(batch) for batch in repository.iter_batches(session_id)]


PRETTY = {"indent": 2}
COMPACT = {"separators": (",", ":")}


#: What a JSON document may be, and the sessions that it becomes.
DOCUMENTS: list[tuple[Any, dict[str, Any]]] = [
    (TRIP, {"chat": TRIP}),
    ({"messages": TRIP}, {"chat": TRIP}),
    ({"id": "a", "messages": TRIP}, {"a": TRIP}),
    ({"messages": TRIP, "id": "a", "source": "s", "model": "m"}, {"s/a": TRIP}),
    ([TRIP, SHORT], {"chat": TRIP, "chat-2": SHORT}),
    ([{"id": "a", "messages": TRIP}, {"messages": SHORT}], {"a": TRIP, "chat-2": SHORT}),
    ([{"id": 7, "messages": TRIP}, SHORT], {"7": TRIP, "chat-2": SHORT}),
    (user("hi"), {"chat": [user("hi")]}),
    ([{"id": "empty", "messages": []}], {"empty": []}),
    ([], {}),
]


@pytest.mark.parametrize("style", [{}, PRETTY, COMPACT], ids=["plain", "pretty", "compact"])
@pytest.mark.parametrize(("value", "sessions"), DOCUMENTS)
def test_every_form_of_a_json_document(
    turnlog: CommandLine, file_of: FileOf, value: Any, sessions: dict[str, Any], style: dict[str, Any]
) -> None:
    turnlog.ok("import", file_of(text=json.dumps(value, **style), name="chat.json"))
    assert stored(turnlog) == sessions


@pytest.mark.parametrize(
    ("lines", "sessions"),
    [
        (TRIP, {"chat": TRIP}),
        ([TRIP, SHORT], {"chat": TRIP, "chat-2": SHORT}),
        ([{"id": "a", "messages": TRIP}, SHORT, {"messages": SHORT}], {"a": TRIP, "chat-2": SHORT, "chat-3": SHORT}),
    ],
)
def test_every_form_of_json_lines(
    turnlog: CommandLine, file_of: FileOf, lines: list[Any], sessions: dict[str, Any]
) -> None:
    turnlog.ok("import", file_of(*lines))
    assert stored(turnlog) == sessions


def test_blank_lines_windows_newlines_and_a_byte_order_mark_do_not_matter(turnlog: CommandLine, tmp_path: Path) -> None:
    lines = b"\r\n\r\n".join(json.dumps(message).encode() for message in TRIP)
    path = tmp_path / "chat.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + lines + b"\r\n  \r\n")
    turnlog.ok("import", path)
    assert stored(turnlog) == {"chat": TRIP}


def test_a_gzipped_file_is_known_by_its_first_bytes(turnlog: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "chat.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(TRIP).encode()))
    turnlog.ok("import", path)
    path.rename(tmp_path / "other")
    turnlog.ok("import", tmp_path / "other")
    assert stored(turnlog) == {"chat": TRIP, "other": TRIP}


def test_standard_input_is_read_like_a_file(turnlog: CommandLine) -> None:
    ran = turnlog.ok("import", "-", stdin=gzip.compress(json.dumps(TRIP).encode()))
    assert ran.out == "stdin: 1 new sessions, 8 new events; 0 events were there already\n"
    assert stored(turnlog) == {"stdin": TRIP}


@pytest.mark.skipif(os.name != "posix", reason="pipes with a name are POSIX")
def test_a_pipe_is_copied_so_that_it_can_be_read_twice(turnlog: CommandLine, tmp_path: Path) -> None:
    pipe = tmp_path / "chat.jsonl"
    os.mkfifo(pipe)
    text = "".join(json.dumps(message) + "\n" for message in TRIP)
    writer = threading.Thread(target=pipe.write_text, args=(text,))
    writer.start()
    turnlog.ok("import", pipe)
    writer.join()
    assert stored(turnlog) == {"chat": TRIP}


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_what_is_appended_after_the_check_is_not_imported_unchecked(
    tmp_path: Path, pack: Callable[[bytes], bytes]
) -> None:
    """Both passes see the same bytes."""
    path = tmp_path / "chat.jsonl"
    lines = [json.dumps(message).encode() + b"\n" for message in TRIP]
    path.write_bytes(pack(b"".join(lines[:5])))
    with Source(str(path)) as source, open_store("memory:") as repository:
        importer = Importer(source, datetime(2026, 1, 1, tzinfo=UTC))
        importer.check()
        with path.open("ab") as file:
            file.write(pack(b"".join(lines[5:]) + b"broken"))
        importer.write(repository)
        assert render(event.content for event in repository.events("chat")) == TRIP[:5]


def test_an_import_that_fails_in_the_middle_says_what_is_stored(turnlog: CommandLine, file_of: FileOf) -> None:
    """Each conversation is one transaction: those before the fault stay, and running it again goes on from there."""
    turnlog.ok("import", file_of({"id": "taken", "messages": SHORT}))
    turnlog.ok("fork", "taken", "b")
    path = file_of(*({"id": name, "messages": TRIP} for name in "abc"), name="three.jsonl")
    ran = turnlog.run("import", path)
    assert ran.code == 4
    assert "three.jsonl: stopped; 8 new events are stored" in ran.err
    assert set(stored(turnlog)) == {"taken", "b", "a"}
    turnlog.ok("delete", "b", "--yes")
    assert "2 new sessions, 16 new events; 8 events were there already" in turnlog.ok("import", path).out


def test_batches_are_messages_and_steps_so_that_versions_stand_between_them(
    turnlog: CommandLine, file_of: FileOf
) -> None:
    """A-3, A-5: a reply and all its tool results are one batch; as_of and fork never cut between them."""
    turnlog.ok("import", file_of(*TRIP))
    assert batches(turnlog, "chat") == [1, 1, 3, 1, 1, 1]


def test_results_without_a_reply_before_them_are_batches_of_their_own(turnlog: CommandLine, file_of: FileOf) -> None:
    turnlog.ok("import", file_of(tool("x", "1"), tool("y", "2"), user("hi"), tool("z", "3")))
    assert batches(turnlog, "chat") == [1, 1, 1, 1]


def test_importing_again_is_a_replay(turnlog: CommandLine, file_of: FileOf) -> None:
    """R-4: event ids come from source, conversation and index."""
    path = file_of(*TRIP)
    turnlog.ok("import", path)
    ran = turnlog.ok("import", path)
    assert ran.out == f"{path}: 0 new sessions, 0 new events; 8 events were there already\n"
    assert stored(turnlog) == {"chat": TRIP}


@pytest.mark.parametrize("length", range(1, len(TRIP)))
def test_a_file_that_has_grown_brings_only_what_is_new(turnlog: CommandLine, file_of: FileOf, length: int) -> None:
    """Wherever it was cut before: between a call and its result, and between two results, too."""
    turnlog.ok("import", file_of(*TRIP[:length]))
    ran = turnlog.ok("import", file_of(*TRIP))
    assert f"{len(TRIP) - length} new events; {length} events were there already" in ran.out
    assert stored(turnlog) == {"chat": TRIP}


def test_a_session_that_went_on_elsewhere_keeps_what_it_has(turnlog: CommandLine, file_of: FileOf) -> None:
    turnlog.ok("import", file_of(*TRIP[:3]))
    turnlog.ok("rewind", "chat", 1)
    turnlog.ok("import", file_of(*TRIP))
    with open_store(str(turnlog.store)) as repository:
        events = repository.events("chat")
    assert [event.type.name for event in events].count("COMPACTION") == 1
    assert render(event.content for event in events if event.is_message) == TRIP


def test_a_changed_message_is_a_conflict_and_nothing_is_written(turnlog: CommandLine, file_of: FileOf) -> None:
    """R-4: the same id with other content."""
    turnlog.ok("import", file_of(*TRIP))
    changed = [*TRIP[:1], user("Where is it cold?"), *TRIP[2:], user("new")]
    assert "other content" in turnlog.fails(4, "import", file_of(*changed))
    assert stored(turnlog) == {"chat": TRIP}


def test_another_conversation_is_never_mixed_into_a_session_of_the_same_id(
    turnlog: CommandLine, file_of: FileOf
) -> None:
    turnlog.ok("import", file_of(*TRIP))
    turnlog.ok("fork", "chat", "theirs")
    other = file_of({"id": "theirs", "messages": SHORT})
    assert "exists already" in turnlog.fails(4, "import", other)
    turnlog.ok("import", other, "--session-prefix", "mine/")
    assert stored(turnlog)["mine/theirs"] == SHORT


def test_event_ids_are_uuids_that_stores_keep_in_16_bytes() -> None:
    assert event_id_of("chat", 0) == "30df60b7-9504-8154-95bb-bc416f623e6a"
    assert event_id_of("chat", 0) != event_id_of("chat", 1) != event_id_of("cha", 1)


def test_what_the_file_says_of_a_conversation_is_kept(turnlog: CommandLine, file_of: FileOf) -> None:
    line = {"id": "a", "metadata": {"plan": "free"}, "model": "m", "messages": SHORT}
    turnlog.ok("import", file_of(line), "--principal", "ada")
    (session,) = turnlog.ok("sessions", "--json", "--principal", "ada").json_lines()
    assert session["metadata"] == {
        "principal_name": "ada",
        "plan": "free",
        "imported": {"file": "chat.jsonl", "number": 1, "id": "a", "model": "m"},
    }


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", "chat.jsonl: the file is empty"),
        (" \n\n", "chat.jsonl: the file is empty"),
        ('{"role": "user"', "chat.jsonl:1: invalid JSON: expecting"),
        ("[1]", "chat.jsonl:1: a conversation must be a list, not a number"),
        ("5", "chat.jsonl:1: expecting a list or an object"),
        ('{"a": 1}', "chat.jsonl:1: an object with neither 'messages' nor 'role'"),
        ('{"messages": 1}', "chat.jsonl:1: invalid JSON: expecting an array"),
        ('{"messages": [], "messages": []}', "chat.jsonl:1: invalid JSON: 'messages' stands twice"),
        ('[{"role": "user", "content": "x"},\n {"role": "critic"}]', "chat.jsonl:2: messages[1].role is 'critic'"),
        ('{"role": "user", "content": "x"}\n{"role": "user", "content": 1}\n', "chat.jsonl:2: message.content must be"),
        ('{"role": "user", "content": "x"}\nnot json\n{"role": "user", "content": "y"}', "chat.jsonl:2: invalid JSON"),
        ('{"role": "user", "content": "x"}\n{"role": "user", "con', "chat.jsonl:2: invalid JSON at column 18"),
        ('not json\n{"role": "user", "content": "x"}\n', "chat.jsonl:1: invalid JSON"),
        ('{"messages": []}\n{"role": "user"}\n', "chat.jsonl:2: a message, where the lines before are conversations"),
        ('{"role": "user"}\n{"messages": []}\n', "chat.jsonl:2: message has no 'role'"),
        ('{"messages": []}\nnull\n', "chat.jsonl:2: null is no conversation"),
        ('{"id": "a", "messages": []}\n{"id": "a", "messages": []}\n', "'a' stands in line 1 already"),
        ('{"id": {}, "messages": []}', "chat.jsonl:1: id must be a string or an integer, not an object"),
        ('{"id": "a\\u0000", "messages": []}', "chat.jsonl:1: session id has a control or surrogate character"),
        ('{"id": "' + "a" * 256 + '", "messages": []}', "chat.jsonl:1: session id must have 1 to 255 characters"),
        ('{"metadata": 1, "messages": []}', "chat.jsonl:1: metadata must be an object or null, not a number"),
        ('[{"role": "user", "content": "x", "n": NaN}]', "chat.jsonl:1: invalid JSON: NaN is not a JSON number"),
        ('[{"role": "user", "content": "x", "n": 1e999}]', "chat.jsonl:1: messages[0]['n']: inf is not a JSON number"),
        ('[{"role": "user", "content": "x", "n": ' + "9" * 5000 + "}]", "an integer of too many digits"),
        ('[{"role": "user", "content": "x", "n": ' + "[" * 201 + "]" * 201 + "}]", "nested deeper than 200"),
        ("[" * 200_000, "nested too deep"),
    ],
)
def test_what_is_wrong_is_named_by_file_and_line_and_nothing_is_written(
    turnlog: CommandLine, file_of: FileOf, text: str, place: str
) -> None:
    assert place in turnlog.fails(8, "import", file_of(text=text))
    assert not turnlog.store.exists()


@pytest.mark.parametrize("data", [b"\xff\xfe{}", b'[{"role": "user", "content": "\xff"}]', b"\x1f\x8b broken"])
def test_bytes_that_are_no_text_are_refused(turnlog: CommandLine, tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "chat.json"
    path.write_bytes(data)
    turnlog.fails(8, "import", path)


def test_a_gzipped_file_that_was_cut_is_refused(turnlog: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "chat.gz"
    path.write_bytes(gzip.compress("".join(json.dumps(message) + "\n" for message in TRIP * 99).encode())[:-20])
    assert "damaged gzip data" in turnlog.fails(8, "import", path)
    assert not turnlog.store.exists()


def test_a_file_that_cannot_be_read_is_named(turnlog: CommandLine, tmp_path: Path) -> None:
    assert "nowhere.jsonl: No such file" in turnlog.fails(8, "import", tmp_path / "nowhere.jsonl")
    assert "directory" in turnlog.fails(8, "import", tmp_path)


def test_invalid_lines_are_skipped_when_asked_and_named(turnlog: CommandLine, file_of: FileOf) -> None:
    lines = [json.dumps(message) for message in SHORT]
    path = file_of(text="\n".join([lines[0], "broken", '{"role": "critic"}', lines[1]]))
    ran = turnlog.ok("import", path, "--skip-invalid")
    assert stored(turnlog) == {"chat": SHORT}
    assert [line.split(": ")[0] for line in ran.err.splitlines()] == [f"skipped {path}:2", f"skipped {path}:3"]
    again = turnlog.ok("import", path, "--skip-invalid")
    assert "0 new events; 2 events were there already" in again.out


def test_a_line_that_was_skipped_and_is_repaired_is_a_conflict_not_a_misplaced_message(
    turnlog: CommandLine, file_of: FileOf
) -> None:
    turnlog.ok("import", file_of(text='{"role": "critic"}\n' + json.dumps(user("b"))), "--skip-invalid")
    assert "other content" in turnlog.fails(4, "import", file_of(user("a"), user("b")))
    assert stored(turnlog) == {"chat": [user("b")]}


def test_invalid_conversations_are_skipped_whole(turnlog: CommandLine, file_of: FileOf) -> None:
    values: list[Any] = [SHORT, [user("x"), {"role": "critic"}], {"id": [], "messages": []}, TRIP]
    for path in (file_of(*values), file_of(text=json.dumps(values), name="chat.json")):
        ran = turnlog.ok("import", path, "--skip-invalid")
        assert ran.err.count("skipped") == 2
        assert stored(turnlog) == {"chat": SHORT, "chat-4": TRIP}


def test_a_document_that_is_no_json_cannot_be_skipped_over(turnlog: CommandLine, file_of: FileOf) -> None:
    turnlog.fails(8, "import", file_of(text='[[],\n{"role": broken]', name="chat.json"), "--skip-invalid")


def test_a_dry_run_checks_and_writes_nothing(turnlog: CommandLine, file_of: FileOf) -> None:
    path = file_of(*TRIP)
    ran = turnlog.ok("import", path, "--dry-run")
    assert ran.out == f"{path}: 1 sessions with 8 events; nothing was written\n"
    assert not turnlog.store.exists()
    turnlog.fails(8, "import", file_of(text="broken"), "--dry-run")


def test_a_line_over_the_limit_is_refused_or_skipped(turnlog: CommandLine, file_of: FileOf) -> None:
    path = file_of(user("x"), user("y" * (1 << 20)), user("z"))
    assert "chat.jsonl:2: a line of more than" in turnlog.fails(8, "import", path, "--max-line", 1)
    turnlog.ok("import", path, "--max-line", 1, "--skip-invalid")
    assert stored(turnlog) == {"chat": [user("x"), user("z")]}


def test_the_format_can_be_said(turnlog: CommandLine, file_of: FileOf) -> None:
    path = file_of(user("x"), user("y"))
    turnlog.fails(8, "import", path, "--format", "openai-json")
    assert "expecting the header" in turnlog.fails(8, "import", path, "--format", "turnlog")
    turnlog.ok("import", path, "--format", "openai-jsonl")


def test_several_files_and_a_summary_for_programs(turnlog: CommandLine, file_of: FileOf) -> None:
    paths = (file_of(*SHORT, name="a.jsonl"), file_of(*TRIP, name="b.jsonl"))
    ran = turnlog.ok("import", *paths, "--json")
    first, second = ran.json_lines()
    assert first["summary"]["new_events"] == 2
    assert second["file"] == str(paths[1])
    assert set(stored(turnlog)) == {"a", "b"}
    turnlog.fails(2, "import", "-", "-")


def test_every_real_conversation_comes_back_as_it_was(turnlog: CommandLine, data: Path) -> None:
    turnlog.ok("import", data / "conversations.jsonl.gz")
    with gzip.open(data / "conversations.jsonl.gz", "rt", encoding="utf-8") as file:
        conversations = [json.loads(line) for line in file]
    kept = {}
    with open_store(str(turnlog.store)) as repository:
        for conversation in conversations:
            session_id = f"{conversation['source']}/{conversation['id']}"
            kept[session_id] = render(event.content for event in repository.events(session_id))
    assert kept == {f"{one['source']}/{one['id']}": one["messages"] for one in conversations}


def test_of_two_files_of_one_name_it_is_told_which_is_meant(turnlog: CommandLine, tmp_path: Path) -> None:
    """And of one that is a folder, or has a folder's ending, which it was."""
    paths = (tmp_path / "a" / "chat.jsonl", tmp_path / "b" / "chat.jsonl")
    for path, text in zip(paths, ("Hello", "Goodbye"), strict=True):
        path.parent.mkdir()
        path.write_text(json.dumps(user(text)), "utf-8")
    ran = turnlog.run("import", *paths)
    assert ran.out.startswith(f"{paths[0]}: 1 new")
    assert ran.err.startswith(f"{paths[1]}: stopped")
    assert f"turnlog: {paths[0].parent}: Is a directory" in turnlog.fails(8, "import", paths[0].parent)
