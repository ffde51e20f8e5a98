"""From our messages to Anthropic's."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from turnlog.formats.anthropic.media import write_media
from turnlog.formats.anthropic.reading import FORMAT, IDS, read, read_system
from turnlog.formats.json_fields import is_array
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

_THOUGHTS: Final = frozenset({"thinking", "redacted_thinking"})


class _Blocks:
    def text(self, text: str) -> dict[str, Any]:
        return {"type": "text", "text": text}

    def media(self, part: MediaPart, place: Place, _writing: Writing) -> dict[str, Any] | None:
        return None if place == "assistant" else write_media(part)

    def refusal(self, _text: str, _place: Place) -> dict[str, Any] | None:
        return None

    def reasoning(self, part: ReasoningPart) -> dict[str, Any] | None:
        if part.data is not None:
            return {"type": "redacted_thinking", "data": part.data}
        if not part.signature:
            return None
        return {"type": "thinking", "thinking": part.text or "", "signature": part.signature}

    def assistant(self, message: AssistantMessage, writing: Writing) -> list[dict[str, Any]]:
        written = content_blocks(message.content, "assistant", ".content", self, writing)
        written += (
            {"type": "tool_use", "id": call_id, "name": call.name, "input": value}
            for call, call_id, value in call_inputs(message, writing)
        )
        while written and written[-1]["type"] in _THOUGHTS:
            writing.lost(".content", "reasoning", "nothing follows it, which is refused")
            written.pop()
        return written

    def results(self, message: ToolMessage, writing: Writing) -> list[dict[str, Any]]:
        written: list[dict[str, Any]] = []
        for index, result in final_results(message):
            block: dict[str, Any] = {"type": "tool_result", "tool_use_id": writing.ids.result(result.id)}
            content = result.content
            if isinstance(content, str) or content is None:
                block["content"] = content or ""
            else:
                block["content"] = content_blocks(content, "result", f".results[{index}].content", self, writing)
            if result.status is not ToolStatus.OK:
                block["is_error"] = True
            written.append(block)
        return written


def _system_blocks(original: Any) -> list[dict[str, Any]]:
    return [] if isinstance(original, str) else original


_BLOCKS: Final = _Blocks()
_FORM: Final = TurnForm(FORMAT, "content", "assistant", IDS, read)
_SYSTEM: Final = SystemPlace(FORMAT, frozenset({"system"}), read_system, _system_blocks)


def render(messages: Iterable[Message], notes: Notes | None = None) -> dict[str, Any]:
    """``messages``, and ``system`` where there is one, as the API takes them; ``notes`` collects what is left out."""
    rendered = render_turns(list(messages), _FORM, _BLOCKS, notes)
    request: dict[str, Any] = {"messages": rendered.turns}
    system = render_systems(rendered.systems, _SYSTEM, _BLOCKS.text, notes)
    is_text = len(rendered.systems) == 1 and isinstance(rendered.systems[0][1].content, str)
    if is_array(system) and is_text and rendered.systems[0][1].native is None:
        request["system"] = system[0]["text"]
    elif system is not None:
        request["system"] = system
    return request
