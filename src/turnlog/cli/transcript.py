"""A log as a person reads it: turns under rules, calls above their results, marks where compaction was at work."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from rich.console import Console
from rich.text import Text

from turnlog.cli.content import Body, BodyStyle, Glyphs, render_calls, render_parts, render_payload, render_result
from turnlog.cli.escaping import one_line
from turnlog.cli.turn_index import TurnIndex
from turnlog.log.events import EventMetadata, SessionEvent
from turnlog.log.messages import AssistantMessage, MessageType, ToolCall, ToolMessage
from turnlog.log.view import BoundaryError, Range, read_boundary

ROLE_STYLES = {
    MessageType.SYSTEM: "magenta",
    MessageType.USER: "bold green",
    MessageType.ASSISTANT: "bold cyan",
    MessageType.TOOL: "yellow",
}
_ROLE_WIDTH = 9


class Setting(Struct, frozen=True):
    """What the transcript knows beside the events: the turns, and what lies outside of the view."""

    turns: TurnIndex
    outside: tuple[Range, ...] = ()
    last_position: int = 0
    full: bool = False


class Transcript:
    """Prints events one after the other, in the order read."""

    def __init__(self, console: Console, setting: Setting) -> None:
        self._console = console
        self._setting = setting
        self._glyphs = Glyphs.of(console)
        width = max(3, len(str(setting.last_position)))
        body_width = max(20, console.width - width - _ROLE_WIDTH - 3)
        self._style = BodyStyle(self._glyphs, body_width, setting.full)
        self._position_width = width
        self._section: str | None = None
        self._calls: dict[str, ToolCall] = {}
        self._has_outside = False

    def show(self, events: Iterable[SessionEvent]) -> int:
        """Print these events; returns how many there were."""
        count = 0
        for event in events:
            count += 1
            self._open_section(event)
            if event.is_boundary:
                self._print_boundary(event)
            else:
                self._print_event(event)
        return count

    def end(self) -> None:
        """Explain the marks that were used."""
        if self._has_outside:
            self._console.print()
            self._console.print(Text(f"{self._glyphs.outside} in the log, but not in the view", style="dim"))

    def _open_section(self, event: SessionEvent) -> None:
        """A rule where another turn begins. Results stand close to their calls; all else has air above it."""
        section = "summary" if event.is_synthetic else self._turn_of(event)
        if event.is_boundary or section == self._section:
            if not isinstance(event.message, ToolMessage):
                self._console.print()
            return
        if self._section is not None:
            self._console.print()
        self._section = section
        position = event.position or 0
        is_cut = section.startswith("turn") and not self._setting.turns.is_start(position)
        name, style = (f"{section}, from its middle on", "bold yellow") if is_cut else (section, "bold")
        moment = Text(f"  {event.timestamp:%Y-%m-%d %H:%M:%S} UTC", style="dim")
        self._rule(Text.assemble((name, style), moment), "dim")
        self._console.print()

    def _turn_of(self, event: SessionEvent) -> str:
        number = self._setting.turns.number_at(event.position or 0)
        return f"turn {number}" if number else "preamble"

    def _rule(self, title: Text, style: str) -> None:
        lead = Text(self._glyphs.line * 2 + " ", style=style)
        rest = self._console.width - title.cell_len - 4
        self._console.print(Text.assemble(lead, title, (" " + self._glyphs.line * rest, style)))

    def _print_boundary(self, event: SessionEvent) -> None:
        try:
            boundary = read_boundary(event.payload, event.position or 0)
        except BoundaryError as error:
            self._rule(Text(f"{event.position} boundary that cannot be read: {one_line(str(error))}"), "bold red")
            return
        view = shown_ranges(boundary.view)
        title = Text(f"{event.position} {one_line(boundary.strategy)}", style="bold magenta")
        self._rule(Text.assemble(title, (f"  the view is now {view}", "dim")), "magenta")

    def _print_event(self, event: SessionEvent) -> None:
        is_outside = self._is_outside(event.position or 0)
        self._has_outside = self._has_outside or is_outside
        mark = self._glyphs.outside if is_outside else " "
        margin = Text.assemble((f"{event.position:>{self._position_width}}{mark} ", "dim"), self._role(event))
        for body in (*self._tags(event), *self._body(event)):
            for line in body.lines(self._console, self._style.width):
                row = Text.assemble(margin, line)
                row.rstrip()
                self._console.print(row)
                margin = Text(" " * margin.cell_len)

    def _is_outside(self, position: int) -> bool:
        return any(low <= position <= high for low, high in self._setting.outside)

    @staticmethod
    def _role(event: SessionEvent) -> Text:
        if event.message is None:
            return Text(f"{'event':{_ROLE_WIDTH}} ", style="blue")
        type_ = event.message.type
        return Text(f"{type_.value:{_ROLE_WIDTH}} ", style=ROLE_STYLES[type_])

    @staticmethod
    def _tags(event: SessionEvent) -> list[Body]:
        tags = [] if event.branch is None else [f"on branch {event.branch}"]
        if event.is_synthetic:
            tags.append(f"written by {event.metadata.get(EventMetadata.STRATEGY, 'a compaction')}")
        return [Body(Text(one_line(", ".join(tags)), style="italic blue"))] if tags else []

    def _body(self, event: SessionEvent) -> list[Body]:
        message = event.message
        if message is None:
            return [render_payload(event, self._style)]
        if isinstance(message, ToolMessage):
            return [render_result(result, self._calls.get(result.id), self._style) for result in message.results]
        if isinstance(message, AssistantMessage) and message.tool_calls:
            # Models use an id again in later replies: a result belongs to the newest call with its id.
            self._calls |= {call.id: call for call in message.tool_calls}
            said = render_parts(message.content, message.type, self._style) if message.content else []
            return said + render_calls(message.tool_calls, self._style)
        return render_parts(message.content, message.type, self._style)


def shown_ranges(ranges: Iterable[Range]) -> str:
    """Ranges of positions as a person writes them."""
    return ", ".join(f"{low}" if low == high else f"{low}-{high}" for low, high in ranges) or "nothing"
