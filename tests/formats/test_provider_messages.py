"""How messages of each provider and ours correspond, both ways, and when the original is kept beside ours (P-1)."""

from __future__ import annotations

from typing import Any, Final

import pytest

from turnlog import (
    AssistantMessage,
    MediaPart,
    Message,
    Native,
    ReasoningPart,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    ToolStatus,
    UserMessage,
)
from turnlog.formats import anthropic, bedrock, gemini, openai_responses

PNG = MediaPart(media_type="image/png", data=b"\x00\x01\x02")
PDF = MediaPart(media_type="application/pdf", data=b"%PDF", name="a")
FORMATS: Final[dict[str, Any]] = {
    "anthropic": anthropic,
    "gemini": gemini,
    "bedrock": bedrock,
    "openai-responses": openai_responses,
}
MAIN: Final = {"anthropic": "messages", "gemini": "contents", "bedrock": "messages", "openai-responses": "input"}
SYSTEM: Final = {
    "anthropic": "system",
    "gemini": "systemInstruction",
    "bedrock": "system",
    "openai-responses": "instructions",
}

HI: dict[str, Any] = {
    "anthropic": {"role": "user", "content": [{"type": "text", "text": "Hi."}]},
    "gemini": {"role": "user", "parts": [{"text": "Hi."}]},
    "bedrock": {"role": "user", "content": [{"text": "Hi."}]},
    "openai-responses": {"role": "user", "content": "Hi."},
}
CALL = ToolCall("c1", "look", '{"a":1}')
CALLED: dict[str, Any] = {
    "anthropic": {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "c1", "name": "look", "input": {"a": 1}}],
    },
    "gemini": {"role": "model", "parts": [{"functionCall": {"id": "c1", "name": "look", "args": {"a": 1}}}]},
    "bedrock": {
        "role": "assistant",
        "content": [{"toolUse": {"toolUseId": "c1", "name": "look", "input": {"a": 1}}}],
    },
    "openai-responses": {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"a":1}'},
}

#: What they send, as it stands in a request, and what it is in ours: nothing has to be kept beside it.
_Row = tuple[str, list[dict[str, Any]], list[Message]]


def _both() -> list[_Row]:
    said: list[_Row] = [(provider, [HI[provider]], [UserMessage("Hi.")]) for provider in FORMATS]
    called: list[Message] = [UserMessage("Hi."), AssistantMessage(tool_calls=[CALL])]
    return said + [(provider, [HI[provider], CALLED[provider]], called) for provider in FORMATS]


SAME: list[_Row] = [
    *_both(),
    (
        "anthropic",
        [
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "c1", "content": "5"},
                    {"type": "tool_result", "tool_use_id": "c2", "content": "no", "is_error": True},
                    {"type": "text", "text": "And?"},
                ],
            }
        ],
        [
            ToolMessage([ToolResult("c1", "5"), ToolResult("c2", "no", ToolStatus.ERROR)]),
            UserMessage("And?"),
        ],
    ),
    (
        "anthropic",
        [
            {
                "role": "user",
                "content": [
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAEC"}},
                    {"type": "image", "source": {"type": "url", "url": "https://e.org/a"}},
                    {
                        "type": "document",
                        "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="},
                        "title": "a",
                    },
                    {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "é"}},
                    {"type": "document", "source": {"type": "url", "url": "https://e.org/b.pdf"}},
                ],
            }
        ],
        [
            UserMessage(
                [
                    PNG,
                    MediaPart(media_type="image/*", url="https://e.org/a"),
                    PDF,
                    MediaPart(media_type="text/plain", data="é".encode()),
                    MediaPart(media_type="application/pdf", url="https://e.org/b.pdf"),
                ]
            )
        ],
    ),
    (
        "gemini",
        [
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"id": "c1", "name": "look", "response": {"output": "5"}}},
                    {"functionResponse": {"id": "c2", "name": "look", "response": {"error": "no"}}},
                    {"text": "And?"},
                    {"inlineData": {"mimeType": "image/png", "data": "AAEC"}},
                    {"fileData": {"mimeType": "video/mp4", "fileUri": "https://youtu.be/x"}},
                ],
            }
        ],
        [
            ToolMessage([ToolResult("c1", "5", name="look"), ToolResult("c2", "no", ToolStatus.ERROR, name="look")]),
            UserMessage([TextPart("And?"), PNG, MediaPart(media_type="video/mp4", url="https://youtu.be/x")]),
        ],
    ),
    (
        "bedrock",
        [
            {
                "role": "user",
                "content": [
                    {"toolResult": {"toolUseId": "c1", "content": [{"text": "5"}], "status": "success"}},
                    {"text": "And?"},
                    {"image": {"format": "png", "source": {"bytes": "AAEC"}}},
                    {"document": {"format": "pdf", "name": "a", "source": {"bytes": "JVBERg=="}}},
                    {"video": {"format": "mp4", "source": {"s3Location": {"uri": "s3://b/k"}}}},
                ],
            }
        ],
        [
            ToolMessage([ToolResult("c1", "5")]),
            UserMessage([TextPart("And?"), PNG, PDF, MediaPart(media_type="video/mp4", url="s3://b/k")]),
        ],
    ),
    (
        "openai-responses",
        [
            {"role": "assistant", "content": "Yes."},
            {"role": "assistant", "content": "Let me look."},
            {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{"},
            {"type": "function_call_output", "call_id": "c1", "output": "5"},
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "And?"},
                    {"type": "input_image", "image_url": "data:image/png;base64,AAEC", "detail": "auto"},
                    {"type": "input_file", "file_data": "data:application/pdf;base64,JVBERg==", "filename": "a"},
                    {"type": "input_file", "file_url": "https://e.org/b.pdf"},
                ],
            },
            {"role": "system", "content": "Be kind."},
        ],
        [
            AssistantMessage("Yes."),
            AssistantMessage("Let me look.", tool_calls=[ToolCall("c1", "look", "{")]),
            ToolMessage([ToolResult("c1", "5")]),
            UserMessage([TextPart("And?"), PNG, PDF, MediaPart(url="https://e.org/b.pdf")]),
            SystemMessage("Be kind."),
        ],
    ),
]


@pytest.mark.parametrize(("provider", "data", "messages"), SAME)
def test_what_messages_say_themselves_is_not_kept_twice(
    provider: str, data: list[dict[str, Any]], messages: list[Message]
) -> None:
    parsed = FORMATS[provider].parse(data)
    assert parsed == messages
    assert all(message.native is None or message.native.data is None for message in parsed)
    assert FORMATS[provider].render(parsed)[MAIN[provider]] == data


THOUGHT = AssistantMessage([ReasoningPart(text="hm", signature="s1"), TextPart("Yes.")])


@pytest.mark.parametrize(
    ("provider", "data"),
    [
        (
            "anthropic",
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "s1"},
                    {"type": "text", "text": "Yes."},
                ],
            },
        ),
        (
            "gemini",
            {"role": "model", "parts": [{"text": "hm", "thought": True, "thoughtSignature": "s1"}, {"text": "Yes."}]},
        ),
        (
            "bedrock",
            {
                "role": "assistant",
                "content": [
                    {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s1"}}},
                    {"text": "Yes."},
                ],
            },
        ),
    ],
)
def test_a_thought_says_whose_it_is_and_no_more(provider: str, data: dict[str, Any]) -> None:
    _, parsed = FORMATS[provider].parse([HI[provider], data])
    assert parsed == THOUGHT
    assert parsed.native == Native(provider, None)
    assert FORMATS[provider].render([UserMessage("Hi."), parsed])[MAIN[provider]][1] == data
    assert "hm" not in str(FORMATS[provider].render([THOUGHT]))


def anthropic_blocks(role: str, *blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "content": list(blocks)}


TEXT = {"type": "text", "text": "Hi."}
#: What ours cannot say, the message that comes of it, and what is named as missing where the original cannot go along.
MORE: list[tuple[str, Any, Message, list[str]]] = [
    ("anthropic", {"role": "user", "content": "Hi."}, UserMessage("Hi."), []),
    ("anthropic", anthropic_blocks("user"), UserMessage(None), []),
    (
        "anthropic",
        anthropic_blocks("user", TEXT | {"cache_control": {"type": "ephemeral"}}),
        UserMessage("Hi."),
        ["cache_control"],
    ),
    ("anthropic", anthropic_blocks("user", {"type": "hologram", "x": 1}), UserMessage(None), ["hologram"]),
    ("anthropic", anthropic_blocks("assistant", {"type": "text", "text": " "}), AssistantMessage(" "), []),
    (
        "anthropic",
        anthropic_blocks("assistant", TEXT | {"citations": [{"cited_text": "x"}]}),
        AssistantMessage("Hi."),
        ["citations"],
    ),
    (
        "anthropic",
        anthropic_blocks(
            "assistant",
            {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}},
            {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []},
            TEXT,
        ),
        AssistantMessage("Hi."),
        ["server_tool_use", "web_search_tool_result"],
    ),
    (
        "anthropic",
        anthropic_blocks("assistant", {"type": "tool_use", "id": "f:1", "name": "look", "input": {}}, TEXT),
        AssistantMessage("Hi.", tool_calls=[ToolCall("f:1", "look")]),
        [],
    ),
    (
        "anthropic",
        anthropic_blocks("user", {"type": "tool_result", "tool_use_id": "c1", "content": [TEXT], "is_error": False}),
        ToolMessage([ToolResult("c1", "Hi.")]),
        [],
    ),
    ("anthropic", {"role": "system", "content": [TEXT]}, SystemMessage("Hi."), []),
    (
        "gemini",
        {"role": "user", "parts": [{"inline_data": {"mime_type": "image/png", "data": "AAEC"}}]},
        UserMessage([PNG]),
        [],
    ),
    ("gemini", {"parts": [{"text": "Hi."}]}, UserMessage("Hi."), []),
    (
        "gemini",
        {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {}}, "thoughtSignature": "s1"}]},
        AssistantMessage(tool_calls=[ToolCall("function:look", "look")]),
        ["thoughtSignature"],
    ),
    (
        "gemini",
        {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {"a": 1}}}]},
        ToolMessage([ToolResult("function:look", '{"a":1}', name="look")]),
        [],
    ),
    (
        "gemini",
        {
            "role": "user",
            "parts": [{"functionResponse": {"id": "c", "name": "look", "response": {"return_value": [1]}}}],
        },
        ToolMessage([ToolResult("c", "[1]", name="look")]),
        [],
    ),
    (
        "gemini",
        {"role": "user", "parts": [{"inlineData": {"mimeType": "audio/mpeg", "data": "-_8="}}]},
        UserMessage([MediaPart(media_type="audio/mpeg", data=b"\xfb\xff")]),
        [],
    ),
    (
        "gemini",
        {"role": "model", "parts": [{"executableCode": {"code": "1"}}, {"text": "Hi."}]},
        AssistantMessage("Hi."),
        ["executableCode"],
    ),
    (
        "bedrock",
        {"role": "user", "content": [{"text": "Hi."}, {"cachePoint": {"type": "default"}}]},
        UserMessage("Hi."),
        ["cachePoint"],
    ),
    (
        "bedrock",
        {"role": "user", "content": [{"toolResult": {"toolUseId": "c1", "content": [{"json": {"a": 1}}]}}]},
        ToolMessage([ToolResult("c1", '{"a":1}')]),
        [],
    ),
    (
        "bedrock",
        {
            "role": "assistant",
            "content": [{"toolUse": {"toolUseId": "c1", "name": "x", "input": {}, "type": "server_tool_use"}}],
        },
        AssistantMessage(None),
        ["call of a server's tool"],
    ),
    ("openai-responses", [{"role": "developer", "content": "Hi."}], SystemMessage("Hi."), []),
    (
        "openai-responses",
        [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi."}]}],
        UserMessage("Hi."),
        [],
    ),
    (
        "openai-responses",
        [
            {
                "type": "reasoning",
                "id": "rs_1",
                "summary": [{"type": "summary_text", "text": "hm"}],
                "encrypted_content": "e1",
            },
            {"type": "web_search_call", "id": "ws_1", "status": "completed"},
            {
                "type": "message",
                "id": "msg_1",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "Hi.", "annotations": [{"type": "url_citation"}]}],
            },
            {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c1", "name": "look", "input": "free"},
        ],
        AssistantMessage(
            [ReasoningPart(text="hm", signature="e1"), TextPart("Hi.")], tool_calls=[ToolCall("c1", "look", "free")]
        ),
        ["web_search_call", "citations"],
    ),
    (
        "openai-responses",
        [{"role": "user", "content": [{"type": "input_image", "image_url": "https://e.org/a", "detail": "low"}]}],
        UserMessage([MediaPart(media_type="image/*", url="https://e.org/a")]),
        ["detail low"],
    ),
]


@pytest.mark.parametrize(("provider", "data", "message", "missing"), MORE)
def test_what_a_message_cannot_say_is_kept_beside_it(
    provider: str, data: Any, message: Message, missing: list[str]
) -> None:
    sent = data if isinstance(data, list) else [data]
    before = [] if isinstance(message, SystemMessage) else [HI[provider]]
    parsed = FORMATS[provider].parse([*before, *sent])[-1]
    assert parsed == message
    assert parsed.native == Native(provider, data)
    assert [what for _, what in FORMATS[provider].missing(data)] == missing


@pytest.mark.parametrize(
    ("provider", "system", "message"),
    [
        ("anthropic", "Be brief.", SystemMessage("Be brief.")),
        ("anthropic", [TEXT, TEXT], SystemMessage([TextPart("Hi."), TextPart("Hi.")])),
        ("anthropic", [TEXT], SystemMessage("Hi.", native=Native("anthropic", {"system": [TEXT]}))),
        ("anthropic", "", SystemMessage("", native=Native("anthropic", {"system": ""}))),
        ("gemini", {"parts": [{"text": "Hi."}]}, SystemMessage("Hi.")),
        ("bedrock", [{"text": "Hi."}], SystemMessage("Hi.")),
        (
            "bedrock",
            [{"text": "Hi."}, {"cachePoint": {"type": "default"}}],
            SystemMessage(
                "Hi.", native=Native("bedrock", {"system": [{"text": "Hi."}, {"cachePoint": {"type": "default"}}]})
            ),
        ),
        ("openai-responses", "Be brief.", SystemMessage("Be brief.")),
    ],
)
def test_instructions_are_a_message_and_come_back(provider: str, system: Any, message: Message) -> None:
    parsed = FORMATS[provider].parse([HI[provider]], system=system)
    assert parsed[0] == message
    assert parsed[0].native == message.native
    assert FORMATS[provider].render(parsed) == {SYSTEM[provider]: system, MAIN[provider]: [HI[provider]]}


def test_messages_that_stood_apart_stay_apart_and_others_are_joined() -> None:
    """Providers read neighbours of one role as one turn; ours were perhaps said one after another."""
    apart = [HI["anthropic"], HI["anthropic"]]
    assert anthropic.render(anthropic.parse(apart))["messages"] == apart
    joined = anthropic.render([UserMessage("Hi."), UserMessage("Hi.")])["messages"]
    assert joined == [{"role": "user", "content": [TEXT, TEXT]}]
    added = anthropic.render([*anthropic.parse(apart), UserMessage("So?")])["messages"]
    assert added == [HI["anthropic"], {"role": "user", "content": [TEXT, {"type": "text", "text": "So?"}]}]


def test_an_original_joins_what_was_said_before_it_here() -> None:
    """A provider that wants turns to alternate gets them so."""
    marked = {"role": "user", "content": [TEXT | {"cache_control": {"type": "ephemeral"}}]}
    (theirs,) = anthropic.parse([marked])
    assert anthropic.render([UserMessage("So?"), theirs])["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "So?"}, *marked["content"]]}
    ]
    (as_string,) = anthropic.parse([{"role": "user", "content": "Hi."}])
    assert anthropic.render([UserMessage("So?"), as_string, UserMessage("Well?")])["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": text} for text in ("So?", "Hi.", "Well?")]}
    ]


def test_a_thought_that_leads_to_nothing_is_not_sent() -> None:
    """Anthropic refuses an assistant turn that ends with one."""
    thought = AssistantMessage([ReasoningPart(text="hm", signature="s1")], native=Native("anthropic", None))
    assert anthropic.render([UserMessage("Hi."), thought])["messages"] == [HI["anthropic"]]


def test_an_item_that_has_an_id_is_not_sent_twice() -> None:
    """OpenAI refuses duplicates; the second time it is a message like any other."""
    item = {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "Yes.", "annotations": []}],
    }
    _, reply = openai_responses.parse([HI["openai-responses"], item])
    items = openai_responses.render([UserMessage("Hi."), reply, UserMessage("Again?"), reply])["input"]
    assert items[1] == item
    assert items[3] == {"role": "assistant", "content": "Yes."}


def test_a_document_for_bedrock_has_a_text_beside_it() -> None:
    (turn,) = bedrock.render([UserMessage([PDF])])["messages"]
    assert [next(iter(block)) for block in turn["content"]] == ["document", "text"]
    (turn,) = bedrock.render([UserMessage([TextPart("Hi."), PDF])])["messages"]
    assert [next(iter(block)) for block in turn["content"]] == ["text", "document"]


def test_a_history_that_begins_with_the_assistant_gets_a_user_before_it_unless_it_came_so() -> None:
    for content in ([TEXT], "Hi."):
        reply = {"role": "assistant", "content": content}
        assert anthropic.render(anthropic.parse([reply]))["messages"] == [reply]
    assert [turn["role"] for turn in anthropic.render([AssistantMessage("Hi.")])["messages"]] == ["user", "assistant"]
    calls = [CALLED["gemini"], {"role": "user", "parts": [{"text": "?"}]}]
    assert gemini.render(gemini.parse(calls))["contents"][0]["role"] == "user"


def test_an_interim_result_answers_nothing_and_is_not_sent() -> None:
    """V-1: the last word on a call is its result."""
    messages: list[Message] = [
        UserMessage("Hi."),
        AssistantMessage(tool_calls=[CALL]),
        ToolMessage([ToolResult("c1", "wait", ToolStatus.INTERIM)]),
        ToolMessage([ToolResult("c1", "5")]),
    ]
    for provider, format_ in FORMATS.items():
        assert "wait" not in str(format_.render(messages)), provider
        assert "5" in str(format_.render(messages))


def test_a_failed_call_is_one_where_the_provider_has_a_place_for_that() -> None:
    messages: list[Message] = [
        UserMessage("Hi."),
        AssistantMessage(tool_calls=[CALL]),
        ToolMessage([ToolResult("c1", None, ToolStatus.NOT_RUN)]),
    ]
    assert anthropic.render(messages)["messages"][2]["content"][0]["is_error"] is True
    assert gemini.render(messages)["contents"][2]["parts"][0]["functionResponse"]["response"] == {"error": ""}
    # Bedrock refuses an error that says nothing.
    assert bedrock.render(messages)["messages"][2]["content"][0]["toolResult"]["content"] != []


def test_a_call_that_another_model_made_tells_gemini_so() -> None:
    """Its newer models refuse a call without a signature, and take Google's own word for it that there is none."""
    mine = gemini.render([UserMessage("Hi."), AssistantMessage(tool_calls=[CALL, ToolCall("c2", "look")])])
    first, second = mine["contents"][1]["parts"]
    assert first["thoughtSignature"] == "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="
    assert "thoughtSignature" not in second
    theirs = [HI["gemini"], CALLED["gemini"]]
    assert gemini.render(gemini.parse(theirs))["contents"] == theirs


def test_media_in_results_go_where_they_are_taken() -> None:
    messages: list[Message] = [
        UserMessage("Hi."),
        AssistantMessage(tool_calls=[CALL]),
        ToolMessage([ToolResult("c1", [TextPart("Here."), PNG])]),
    ]
    assert [block["type"] for block in anthropic.render(messages)["messages"][2]["content"][0]["content"]] == [
        "text",
        "image",
    ]
    parts = gemini.render(messages)["contents"][2]["parts"]
    assert [next(iter(part)) for part in parts] == ["functionResponse", "inlineData"]
    blocks = bedrock.render(messages)["messages"][2]["content"][0]["toolResult"]["content"]
    assert [next(iter(block)) for block in blocks] == ["text", "image"]
    output = openai_responses.render(messages)["input"][2]["output"]
    assert [part["type"] for part in output] == ["input_text", "input_image"]


def test_a_message_that_would_be_empty_says_that_something_was_left_out() -> None:
    """B155: as text, never as the image itself."""
    sound = UserMessage([MediaPart(media_type="audio/wav", data=b"RIFF")])
    assert anthropic.render([sound])["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "(audio/wav: left out)"}]}
    ]
    beside = UserMessage([TextPart("Hi."), *sound.parts])
    assert anthropic.render([beside])["messages"] == [{"role": "user", "content": [TEXT]}]


def test_names_of_documents_are_made_such_as_bedrock_takes() -> None:
    def names(*given: str | None) -> list[str]:
        parts = [MediaPart(media_type="application/pdf", data=b"%PDF", name=name) for name in given]
        (turn,) = bedrock.render([UserMessage([TextPart("Hi."), *parts])])["messages"]
        return [block["document"]["name"] for block in turn["content"][1:]]

    assert names("a.pdf", None, "ok (1)", "…", "x" * 300) == ["a pdf", "Document 1", "ok (1)", "Document 2", "x" * 200]
