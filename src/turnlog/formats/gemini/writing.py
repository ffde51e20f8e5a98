"""From our messages to Gemini's contents."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from typing import Any, Final

from turnlog.formats.gemini.media import write_media
from turnlog.formats.gemini.reading import FORMAT, IDS, SYSTEM, SYSTEM_KEYS, read, read_system
from turnlog.formats.gemini.responses import ERROR, OUTPUT
from turnlog.formats.loss import Notes
from turnlog.formats.systems import SystemPlace, render_systems
from turnlog.formats.turns import TurnForm, render_turns
from turnlog.formats.writing import Place, Writing, call_inputs, content_blocks, final_results
from turnlog.log.messages import (
    AssistantMessage,
    MediaPart,
    Message,
    ReasoningPart,
    ToolMessage,
    ToolStatus,
)

#: What Google documents for calls that another model made: its newer models ask for a signature at the first call of
#: each turn, and this one says that there is none.
_NO_SIGNATURE: Final = b64encode(b"skip_thought_signature_validator").decode()


class _Blocks:
    def text(self, text: str) -> dict[str, Any]:
        return {"text": text}

    def media(self, part: MediaPart, _place: Place, _writing: Writing) -> dict[str, Any] | None:
        return write_media(part)

    def refusal(self, _text: str, _place: Place) -> dict[str, Any] | None:
        return None

    def reasoning(self, part: ReasoningPart) -> dict[str, Any] | None:
        if part.text is None:
            return None
        written: dict[str, Any] = {"text": part.text, "thought": True}
        return written if part.signature is None else written | {"thoughtSignature": part.signature}

    def assistant(self, message: AssistantMessage, writing: Writing) -> list[dict[str, Any]]:
        written = content_blocks(message.content, "assistant", ".content", self, writing)
        is_exact = writing.is_own and message.native is not None and message.native.data is None
        for number, (call, call_id, value) in enumerate(call_inputs(message, writing)):
            part: dict[str, Any] = {"functionCall": {"id": call_id, "name": call.name, "args": value}}
            if number == 0 and not is_exact:
                part["thoughtSignature"] = _NO_SIGNATURE
            written.append(part)
        return written

    def results(self, message: ToolMessage, writing: Writing) -> list[dict[str, Any]]:
        written: list[dict[str, Any]] = []
        media: list[dict[str, Any]] = []
        for index, result in final_results(message):
            parts = content_blocks(result.content, "result", f".results[{index}].content", self, writing)
            # Only the newest models take media within a response; all take them beside it.
            media += (part for part in parts if "text" not in part)
            text = result.content if isinstance(result.content, str) else "".join(p.get("text", "") for p in parts)
            key = OUTPUT if result.status is ToolStatus.OK else ERROR
            name = result.name or writing.ids.name(result.id) or "unknown"
            response = {"id": writing.ids.result(result.id), "name": name, "response": {key: text or ""}}
            written.append({"functionResponse": response})
        return written + media


def _parts(original: dict[str, Any]) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = original["parts"]
    return parts


_BLOCKS: Final = _Blocks()
_FORM: Final = TurnForm(FORMAT, "parts", "model", IDS, read, never_first=frozenset({"functionCall", "function_call"}))
_SYSTEM: Final = SystemPlace(FORMAT, SYSTEM_KEYS, read_system, _parts)


def render(messages: Iterable[Message], notes: Notes | None = None) -> dict[str, Any]:
    """``contents``, and ``systemInstruction`` where there is one, as the API takes them.

    ``notes`` collects what is left out.
    """
    rendered = render_turns(list(messages), _FORM, _BLOCKS, notes)
    request: dict[str, Any] = {"contents": rendered.turns}
    system = render_systems(rendered.systems, _SYSTEM, _BLOCKS.text, notes)
    if isinstance(system, list):
        request[SYSTEM] = {"parts": system}
    elif system is not None:
        native = rendered.systems[0][1].native
        request[next(iter(native.data)) if native else SYSTEM] = system
    return request
