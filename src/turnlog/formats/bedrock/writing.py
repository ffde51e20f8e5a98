"""From our messages to Bedrock's."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from turnlog.formats.bedrock.media import write_media
from turnlog.formats.bedrock.reading import FORMAT, IDS, read, read_system
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


class _Blocks:
    def text(self, text: str) -> dict[str, Any]:
        return {"text": text}

    def media(self, part: MediaPart, place: Place, writing: Writing) -> dict[str, Any] | None:
        return None if place == "assistant" else write_media(part, writing)

    def refusal(self, _text: str, _place: Place) -> dict[str, Any] | None:
        return None

    def reasoning(self, part: ReasoningPart) -> dict[str, Any] | None:
        if part.data is not None:
            return {"reasoningContent": {"redactedContent": part.data}}
        if part.signature is None:
            return None
        return {"reasoningContent": {"reasoningText": {"text": part.text or "", "signature": part.signature}}}

    def assistant(self, message: AssistantMessage, writing: Writing) -> list[dict[str, Any]]:
        written = content_blocks(message.content, "assistant", ".content", self, writing)
        written += (
            {"toolUse": {"toolUseId": call_id, "name": call.name, "input": value}}
            for call, call_id, value in call_inputs(message, writing)
        )
        return written

    def results(self, message: ToolMessage, writing: Writing) -> list[dict[str, Any]]:
        written: list[dict[str, Any]] = []
        for index, result in final_results(message):
            content = content_blocks(result.content, "result", f".results[{index}].content", self, writing)
            status = "success" if result.status is ToolStatus.OK else "error"
            if status == "error" and not content:
                content = [self.text("(The tool failed and said nothing.)")]  # refused without a word
            call_id = writing.ids.result(result.id)
            written.append({"toolResult": {"toolUseId": call_id, "content": content, "status": status}})
        return written


def _same(original: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return original


def _accompany_documents(blocks: list[dict[str, Any]]) -> None:
    """A document is refused where no text stands beside it."""
    kinds = {kind for block in blocks for kind in block}
    if "document" in kinds and not kinds & {"text", "toolResult"}:
        blocks.append(_BLOCKS.text("(A document is attached.)"))


_BLOCKS: Final = _Blocks()
_FORM: Final = TurnForm(FORMAT, "content", "assistant", IDS, read)
_SYSTEM: Final = SystemPlace(FORMAT, frozenset({"system"}), read_system, _same)


def render(messages: Iterable[Message], notes: Notes | None = None) -> dict[str, Any]:
    """``messages``, and ``system`` where there is one, as the API takes them; ``notes`` collects what is left out."""
    rendered = render_turns(list(messages), _FORM, _BLOCKS, notes)
    for turn in rendered.turns:
        _accompany_documents(turn["content"])
    request: dict[str, Any] = {"messages": rendered.turns}
    system = render_systems(rendered.systems, _SYSTEM, _BLOCKS.text, notes)
    if system is not None:
        request["system"] = system
    return request
