"""ChatGPT's export: the way on the screen, the ways left behind, calls and their results (O-5)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.formats.foreign.test_claude_code import shown
from tests.formats.json_strategies import json_values
from turnlog.errors import InvalidValueError
from turnlog.formats import chatgpt
from turnlog.formats.foreign import Entry
from turnlog.log.messages import (
    AssistantMessage,
    MediaPart,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    ToolStatus,
    UserMessage,
)

Fields = dict[str, Any]


def node(id_: str, parent: str | None, role: str | None = None, content: Fields | None = None, **fields: Any) -> Fields:
    message = None
    if role is not None:
        message = {
            "id": id_,
            "author": {"role": role, "name": fields.pop("name", None), "metadata": {}},
            "create_time": fields.pop("create_time", 1_700_000_000.5),
            "content": content,
            "recipient": "all",
            "metadata": {},
            **fields,
        }
    return {"id": id_, "parent": parent, "children": [], "message": message}


def text(*parts: Any) -> Fields:
    return {"content_type": "text", "parts": list(parts)}


def conversation(*nodes: Fields, current: str | None = None, **fields: Any) -> Fields:
    about = {"title": "Trips", "create_time": 1_700_000_000.0, "conversation_id": "conv-1", "current_node": current}
    return about | {"mapping": {found["id"]: found for found in nodes}} | fields


def ways(found: Fields) -> list[list[Entry]]:
    facts = chatgpt.facts_of(found)
    return [list(chatgpt.read(way, facts, 1)) for way in chatgpt.paths(found)]


ROOT = node("root", None)
HELLO = node("u1", "root", "user", text("Where is it warm?"))


def test_the_way_on_the_screen_is_the_conversation_and_the_others_are_forks() -> None:
    found = conversation(
        ROOT,
        HELLO,
        node("a1", "u1", "assistant", text("In Oslo.")),
        node("a2", "u1", "assistant", text("In Rome.")),
        node("u2", "a2", "user", text("And in June?")),
        current="u2",
    )
    assert [shown(way) for way in ways(found)] == [
        ["u Where is it warm?", "a In Rome.", "u And in June?"],
        ["u Where is it warm?", "a In Oslo."],
    ]
    main, fork = chatgpt.paths(found)
    assert (main.leaf, main.forked_at) == (None, None)
    assert (fork.leaf, fork.forked_at) == ("a1", "u1")


def test_times_titles_and_models_are_kept() -> None:
    found = conversation(
        ROOT, HELLO, node("a1", "u1", "assistant", text("In Rome."), metadata={"model_slug": "gpt-5"}), current="a1"
    )
    facts = chatgpt.facts_of(found)
    assert (facts.id, facts.fields) == ("conv-1", {"title": "Trips"})
    assert facts.created_at == datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
    ((question, reply),) = ways(found)
    assert question.timestamp == datetime(2023, 11, 14, 22, 13, 20, 500_000, tzinfo=UTC)
    assert reply.metadata == {"chatgpt": {"id": "a1", "model": "gpt-5"}}


def test_without_a_current_node_the_newest_leaf_is_on_the_screen() -> None:
    found = conversation(
        ROOT,
        HELLO,
        node("a1", "u1", "assistant", text("Newer."), create_time=1_700_000_900),
        node("a2", "u1", "assistant", text("Older."), create_time=1_700_000_100),
    )
    assert shown(ways(found)[0])[-1] == "a Newer."


def test_a_call_has_its_messages_id_and_all_that_the_tool_said_is_its_one_result() -> None:
    code = {"content_type": "code", "language": "python", "text": "print(2+2)"}
    found = conversation(
        ROOT,
        HELLO,
        node("a1", "u1", "assistant", code, recipient="python"),
        node("t1", "a1", "tool", {"content_type": "execution_output", "text": "4"}, name="python"),
        node("t2", "t1", "tool", {"content_type": "execution_output", "text": "done"}, name="python"),
        node("a2", "t2", "assistant", text("It is 4.")),
        current="a2",
    )
    ((_, called, result, reply),) = ways(found)
    assert called.message == AssistantMessage(tool_calls=[ToolCall("a1", "python", "print(2+2)")])
    assert result.message == ToolMessage([ToolResult("a1", (TextPart("4"), TextPart("done")), name="python")])
    assert reply.message == AssistantMessage("It is 4.")


def test_a_call_without_a_result_stays() -> None:
    code = {"content_type": "code", "text": "{}"}
    found = conversation(ROOT, HELLO, node("a1", "u1", "assistant", code, recipient="web"), current="a1")
    assert shown(ways(found)[0]) == ["u Where is it warm?", "a  a1?"]


def test_a_result_that_says_nothing_answers_all_the_same_and_one_that_failed_says_so() -> None:
    code = {"content_type": "code", "text": "{}"}
    silent = {"content_type": "tether_browsing_display", "result": "", "summary": None}
    broken = {"content_type": "system_error", "name": "ToolError", "text": "no such page"}
    found = conversation(
        ROOT,
        HELLO,
        node("a1", "u1", "assistant", code, recipient="web"),
        node("t1", "a1", "tool", silent, name="web"),
        node("a2", "t1", "assistant", code, recipient="web"),
        node("t2", "a2", "tool", broken, name="web"),
        current="t2",
    )
    ((_, _, first, _, second),) = ways(found)
    assert first.message == ToolMessage([ToolResult("a1", None, name="web")])
    assert second.message == ToolMessage([ToolResult("a2", "no such page", ToolStatus.ERROR, "web")])


def test_thoughts_belong_to_what_they_led_to() -> None:
    thoughts = {"content_type": "thoughts", "thoughts": [{"summary": "Maps", "content": "South is warm."}]}
    recap = {"content_type": "reasoning_recap", "content": "Thought for 3 s"}
    found = conversation(
        ROOT,
        HELLO,
        node("h1", "u1", "assistant", thoughts),
        node("h2", "h1", "assistant", recap),
        node("a1", "h2", "assistant", text("In Rome.")),
        current="a1",
    )
    ((_, reply),) = ways(found)
    assert reply.message == AssistantMessage(
        [ReasoningPart(text="Maps\nSouth is warm."), ReasoningPart(text="Thought for 3 s"), TextPart("In Rome.")]
    )


def test_pictures_and_speech_are_parts() -> None:
    content = {
        "content_type": "multimodal_text",
        "parts": [
            {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-1", "width": 5},
            {"content_type": "audio_transcription", "text": "What is this?"},
            "Tell me.",
            {"content_type": "hologram", "x": 1},
        ],
    }
    ((entry,),) = ways(conversation(node("u1", None, "user", content), current="u1"))
    picture = MediaPart(media_type="image/*", file_id="file-service://file-1")
    assert entry.message == UserMessage([picture, TextPart("What is this?"), TextPart("Tell me.")])


def test_what_was_not_on_the_screen_is_kept_beside_the_conversation() -> None:
    profile = {"content_type": "user_editable_context", "user_profile": "Ann", "user_instructions": "Be brief."}
    found = conversation(
        ROOT,
        node("s1", "root", "system", text(""), metadata={"is_visually_hidden_from_conversation": True}),
        node("s2", "s1", "user", profile),
        node("u1", "s2", "user", text("Hello")),
        node("t1", "u1", "tool", text("Something by itself")),
        node("a1", "t1", "assistant", text("")),
        current="a1",
    )
    facts = chatgpt.facts_of(found)
    (way,) = chatgpt.paths(found)
    entries = list(chatgpt.read(way, facts, 1))
    assert shown(entries) == ["CHATGPT.HIDDEN", "CHATGPT.HIDDEN", "u Hello", "CHATGPT.OTHER"]
    assert entries[1].payload == {"role": "user", "id": "s2", "content": profile}
    assert facts.left_out == {"empty": 1}


def test_a_circle_or_a_missing_parent_ends_a_way() -> None:
    found = conversation(node("a", "b", "user", text("1")), node("b", "a", "assistant", text("2")), current="a")
    assert shown(ways(found)[0]) == ["a 2", "u 1"]
    assert shown(ways(conversation(node("a", "gone", "user", text("1")), current="a"))[0]) == ["u 1"]


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ({"mapping": {}, "create_time": "now"}, "create_time must be a number or null, not a string"),
        ({"mapping": {}, "create_time": 1e300}, "create_time is no time: 1e"),
        ({"mapping": {"a": 5}}, r"mapping\['a'\] must be an object, not a number"),
        ({"mapping": {"a": {"parent": 5}}}, r"mapping\['a'\].parent must be a string or null"),
        ({"mapping": {"a": {"message": {}}}}, r"mapping\['a'\].message has no 'author'"),
        ({"mapping": {"a": node("a", None, "critic", text("x"))}}, r"mapping\['a'\].message.author.role is 'critic'"),
        ({"mapping": {"a": node("a", None, "user")}}, r"mapping\['a'\].message.content must be an object, not null"),
        ({"mapping": {"a": node("a", None, "user", {})}}, r"mapping\['a'\].message.content has no 'content_type'"),
        (
            {"mapping": {"a": node("a", None, "user", text(5))}},
            r"mapping\['a'\].message.content.parts\[0\] must be an object, not a number",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_path(found: Fields, said: str) -> None:
    with pytest.raises(InvalidValueError, match=f"^{said}"):
        ways(found)


_ids = st.sampled_from(["a", "b", "c", "d"])
_contents = st.one_of(
    st.builds(text, st.text(max_size=3)),
    st.sampled_from(
        [
            {"content_type": "code", "text": "1"},
            {"content_type": "thoughts", "thoughts": [{"content": "hm"}]},
            {"content_type": "execution_output", "text": "2"},
            {"content_type": "user_editable_context"},
        ]
    ),
    st.fixed_dictionaries({"content_type": st.sampled_from(["text", "code", "thoughts", "x"]), "parts": json_values}),
    json_values,
)
_nodes = st.builds(
    node,
    _ids,
    _ids | st.none(),
    st.sampled_from(["system", "user", "assistant", "tool", "critic", None]),
    _contents,
    recipient=st.sampled_from(["all", "python"]),
    create_time=st.none() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.just(10**400),
)
_conversations = st.builds(
    conversation, _nodes, _nodes, _nodes, _nodes, current=_ids | st.none(), title=st.text(max_size=2) | json_values
)


@given(_conversations | st.fixed_dictionaries({"mapping": json_values}) | st.dictionaries(st.text(), json_values))
def test_whatever_a_conversation_holds_it_is_read_or_refused_by_a_typed_error(found: Fields) -> None:
    try:
        entries = ways(found)
    except InvalidValueError:
        return
    assert [[shown(way)] for way in entries] == [[shown(way)] for way in ways(found)]
