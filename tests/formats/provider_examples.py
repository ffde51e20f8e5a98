"""The same few things in our messages and in each provider's form."""

from __future__ import annotations

from typing import Any, Final

from turnlog import (
    MediaPart,
    ToolCall,
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
TEXT: dict[str, Any] = {"type": "text", "text": "Hi."}
