"""What a message holds, as text for the terminal: clipped unless all is wanted, with nothing that acts on it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Self

from msgspec import Struct
from rich.console import Console
from rich.text import Text

from turnlog.cli.escaping import one_line, printable
from turnlog.log.codec import encode
from turnlog.log.events import SessionEvent
from turnlog.log.messages import (
    Content,
    MediaPart,
    MessageType,
    Part,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolResult,
    ToolStatus,
)

#: How many lines of a text are shown, by who says it.
_LINES = {MessageType.SYSTEM: 4, MessageType.USER: 12, MessageType.ASSISTANT: 12, MessageType.TOOL: 4}
_CALL_LINES = 4
_KILO = 1000


class Glyphs(Struct, frozen=True):
    """The signs of a transcript, in what the terminal can show."""

    call: str
    result: str
    line: str
    outside: str
    ellipsis: str

    @classmethod
    def of(cls, console: Console) -> Self:
        """Unicode where the output's encoding has it, else ASCII."""
        if console.encoding.lower().startswith("utf"):
            return cls("→", "←", "─", "◦", "…")
        return cls("->", "<-", "-", "o", "...")


class BodyStyle(Struct, frozen=True):
    """How bodies are set: the width in cells, and whether all of a text is shown."""

    glyphs: Glyphs
    width: int
    full: bool = False


class Body(Struct, frozen=True):
    """A piece of what an event says: after ``sign``, under which all its lines are set in."""

    text: Text
    sign: Text = Text()

    def lines(self, console: Console, width: int) -> Iterator[Text]:
        """The lines of it, none wider than ``width`` cells."""
        before = self.sign
        for line in self.text.wrap(console, width - self.sign.cell_len, tab_size=4):
            line.rstrip()
            yield Text.assemble(before, line)
            before = Text(" " * self.sign.cell_len)


def render_parts(content: Content, type_: MessageType, style: BodyStyle) -> list[Body]:
    """The content of a system, user or assistant message."""
    return [Body(text) for text in _texts(content, type_, style)]


def render_calls(calls: Iterable[ToolCall], style: BodyStyle) -> list[Body]:
    """Tool calls, one below the other."""
    sign = Text(f"{style.glyphs.call} ", style="cyan")
    return [
        Body(Text.assemble((f"{one_line(call.name)} ", "bold"), clipped(call.arguments, _CALL_LINES, style)), sign)
        for call in calls
    ]


def render_result(result: ToolResult, call: ToolCall | None, style: BodyStyle) -> Body:
    """A tool's result under the name of the call that asked for it."""
    name = result.name or (call.name if call is not None else result.id)
    head = Text.assemble((f"{one_line(name)} ", "bold"))
    if result.status is not ToolStatus.OK:
        head.append(f"{result.status.value.replace('_', ' ')} ", "bold red")
    if call is None:
        head.append("(its call is not shown) ", "dim")
    said = Text("\n").join(_texts(result.content, MessageType.TOOL, style))
    return Body(head.append_text(said), Text(f"{style.glyphs.result} ", style="yellow"))


def render_payload(event: SessionEvent, style: BodyStyle) -> Body:
    """An event of an own type: its name, and the JSON that it holds."""
    data = encode(event.payload)[1].decode("utf-8")
    return Body(Text.assemble((f"{event.type.name} ", "bold"), clipped(data, _CALL_LINES, style)))


def _texts(content: Content, type_: MessageType, style: BodyStyle) -> list[Text]:
    if content is None:
        return [Text("(no content)", style="dim")]
    if content == "":
        return [Text("(empty)", style="dim")]
    parts: Iterable[Part] = (TextPart(content),) if isinstance(content, str) else content
    return [_part(part, _LINES[type_], style) for part in parts]


def clipped(text: str, lines: int, style: BodyStyle) -> Text:
    """About so many lines of a text, and how much was left out."""
    if style.full:
        return Text(printable(text))
    shown = _beginning(text, lines, style.width)
    left = len(text) - len(shown)
    body = Text(printable(shown.rstrip("\n")))
    if left:
        # On a line of its own where the text was cut between two lines.
        gap = "\n" if shown.endswith("\n") else ""
        body.append(f"{gap}{style.glyphs.ellipsis} {left:,} more characters", "dim")
    return body


def _beginning(text: str, lines: int, width: int) -> str:
    """The longest beginning that fills at most so many lines; all of it where little would be left out."""
    end, room = 0, lines * width
    for line in text[:room].split("\n"):
        room -= max(1, -(-len(line) // width)) * width
        if room < 0:
            break
        end += len(line) + 1
    # A first line that is longer than all the room is cut within.
    end = end or lines * width
    return text if len(text) - end < width else text[:end]


def _part(part: Part, lines: int, style: BodyStyle) -> Text:
    if isinstance(part, TextPart):
        text = clipped(part.text, lines, style)
        return Text.assemble(("refused: ", "bold red"), text) if part.refusal else text
    if isinstance(part, ReasoningPart):
        thought = clipped(part.text or "(withheld)", lines, style)
        thought.stylize("dim italic")
        return Text.assemble(("thinking: ", "dim"), thought)
    return Text(f"[{_media(part)}]", style="blue")


def _media(part: MediaPart) -> str:
    what = one_line(part.media_type or "file")
    held = part.url or part.file_id or ""
    place = f"{_size(len(part.data))}" if part.data is not None else one_line(held[:60])
    name = "" if part.name is None else f"{one_line(part.name)}, "
    return f"{what}: {name}{place}"


def _size(count: int) -> str:
    size = float(count)
    for unit in ("bytes", "kB", "MB"):
        if size < _KILO:
            return f"{size:.0f} {unit}"
        size /= _KILO
    return f"{size:.1f} GB"
