"""``replay``: recorded conversations, held again through the client and its advisors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from turnlog.cli.content import Glyphs
from turnlog.cli.escaping import one_line
from turnlog.cli.options import JsonOption, StoreOption
from turnlog.cli.replaying import Conversation, Held, Options, hold_again, read_conversations
from turnlog.cli.stores import new_or_existing_store
from turnlog.cli.terminal import output, print_json, print_line, progress, say
from turnlog.cli.transcript import ROLE_STYLES, shown_ranges
from turnlog.errors import NotFoundError
from turnlog.log.events import SessionEvent
from turnlog.log.messages import AssistantMessage
from turnlog.log.tokens import TokenCounter, message_tokens
from turnlog.log.view import read_boundary
from turnlog.log.windows import check_count
from turnlog.models.protocol import Prompt, Reply
from turnlog.service import SessionService

FileArgument = Annotated[
    str, typer.Argument(metavar="FILE", help="What `import` reads, gzipped or not; - is standard input.")
]
OnlyOption = Annotated[
    list[str] | None, typer.Option("--only", metavar="ID", help="This conversation of the file. Repeatable.")
]
PrefixOption = Annotated[str, typer.Option("--session-prefix", metavar="TEXT", help="Put before each session's id.")]
CompactOption = Annotated[
    int | None,
    typer.Option("--compact-turns", metavar="N", help="Compact at N turns, to half of them.", show_default=False),
]
LastOption = Annotated[
    int | None,
    typer.Option(
        "--last", "-n", metavar="N", help="N messages of history in a prompt, turns whole.", show_default=False
    ),
]
PromptsOption = Annotated[bool, typer.Option("--prompts", help="Show what the model was given on each round.")]
SkipOption = Annotated[bool, typer.Option("--skip-invalid", help="Leave out what cannot be held again, and name it.")]


def replay(
    file: FileArgument,
    only: OnlyOption = None,
    prefix: PrefixOption = "",
    compact_turns: CompactOption = None,
    last: LastOption = None,
    prompts: PromptsOption = False,
    skip_invalid: SkipOption = False,
    as_json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Hold recorded conversations again, through the client: the model and the tools answer as they are recorded to.

    Each becomes a new session. In the end its log must be the recording; with whole histories each prompt must be too.
    """
    options = Options(_checked("--compact-turns", compact_turns), _checked("--last", last))
    conversations = list(read_conversations(file, (lambda text: say(f"skipped {text}")) if skip_invalid else None))
    conversations = _only(conversations, only or [])
    total = sum(len(conversation.recording.requests) for conversation in conversations)
    with new_or_existing_store(store) as repository, progress("replaying", None if prompts else total) as moved:
        service = SessionService(repository)
        done = 0

        def on_request() -> None:
            nonlocal done
            done += 1
            moved(done)

        for conversation in conversations:
            watcher = _Printing(output(), repository.token_counter) if prompts else _Progressing(on_request)
            held = hold_again(conversation, prefix + conversation.id, service, options, watcher)
            if as_json:
                print_json(held)
            else:
                print_line(_summary(held))


def _checked(option: str, value: int | None) -> int | None:
    return None if value is None else check_count(option, value, least=1)


def _only(conversations: list[Conversation], wanted: list[str]) -> list[Conversation]:
    missing = set(wanted) - {conversation.id for conversation in conversations}
    if missing:
        raise NotFoundError(f"the file has no conversation {min(missing)!r:.80}")
    return [conversation for conversation in conversations if not wanted or conversation.id in wanted]


def _summary(held: Held) -> str:
    facts = [
        _counted(held.requests, "request"),
        _counted(held.model_calls, "model call"),
        _counted(held.tool_calls, "tool call"),
        _counted(held.events, "event"),
    ]
    if held.compactions:
        facts.append(_counted(held.compactions, "compaction"))
    longest = _counted(held.longest_prompt, "message")
    facts.append(f"longest prompt {longest}, {held.longest_prompt_tokens:,} tokens")
    return f"{held.session}: {', '.join(facts)}"


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


class _Progressing:
    """Moves a bar."""

    def __init__(self, on_request: Callable[[], None]) -> None:
        self._on_request = on_request

    def on_prompt(self, prompt: Prompt, reply: Reply) -> None:
        """Not shown."""
        del prompt, reply

    def on_boundary(self, boundary: SessionEvent) -> None:
        """Not shown."""
        del boundary

    def on_request(self) -> None:
        """One more is answered."""
        self._on_request()


class _Printing:
    """Prints each prompt as a line: a letter for each message, its size, and what the model made of it."""

    def __init__(self, console: Console, counter: TokenCounter) -> None:
        self._console = console
        self._counter = counter
        self._glyphs = Glyphs.of(console)
        self._round = 0
        legend = f"      S system, U user, A assistant, T tool; {self._glyphs.call} what the model answered"
        console.print(Text(legend, style="dim"))

    def on_prompt(self, prompt: Prompt, reply: Reply) -> None:
        """A line for a prompt."""
        self._round += 1
        tokens = sum(message_tokens(message, self._counter) for message in prompt.messages)
        line = Text.assemble((f"{self._round:>4}  ", "dim"))
        for message in prompt.messages:
            line.append(message.type.value[0].upper(), ROLE_STYLES[message.type])
        line.append(f"  {tokens:,} tokens", "dim")
        line.append(f"  {self._glyphs.call} ", "cyan").append(_said(reply.message))
        line.truncate(self._console.width, overflow="ellipsis")
        self._console.print(line)

    def on_boundary(self, boundary: SessionEvent) -> None:
        """A line for a compaction."""
        read = read_boundary(boundary.payload, boundary.position or 0)
        text = f"      {self._glyphs.line * 2} compacted: the view is now {shown_ranges(read.view)}"
        self._console.print(Text(text, style="magenta"))

    def on_request(self) -> None:
        """The next prompt shows it."""


def _said(message: AssistantMessage) -> str:
    calls = [f"{call.name} {call.arguments}" for call in message.tool_calls]
    return one_line(" ".join([message.text, *calls] if message.text else calls))
