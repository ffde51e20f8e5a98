"""How messages of each provider and ours correspond, both ways, and when the original is kept beside ours (P-1)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.formats.provider_examples import CALL, CALLED, FORMATS, HI, MAIN, PDF, PNG, SYSTEM, TEXT
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
    (
        "bedrock",
        {
            "role": "user",
            "content": [
                {"document": {"name": "A", "source": {"text": "b"}}},
                {"document": {"name": "C", "format": None, "source": {"bytes": "ZA=="}}},
            ],
        },
        UserMessage(
            [
                MediaPart(media_type="text/plain", data=b"b", name="A"),
                MediaPart(media_type="application/octet-stream", data=b"d", name="C"),
            ]
        ),
        [],
    ),
    ("gemini", {"role": "user", "parts": [{"inline_data": None, "text": "Hi."}]}, UserMessage("Hi."), []),
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
