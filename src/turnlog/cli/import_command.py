"""``import``: files of conversations into a store."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from turnlog.cli.importing.conversations import Form
from turnlog.cli.importing.importer import LONGEST_LINE, Importer, Summary
from turnlog.cli.importing.sources import Source
from turnlog.cli.options import JsonOption, StoreOption
from turnlog.cli.stores import new_or_existing_store
from turnlog.cli.terminal import print_json, print_line, progress, say
from turnlog.errors import InvalidValueError, TurnlogError
from turnlog.storage.opening import system_clock

_MEGABYTE = 1 << 20


class FormatChoice(StrEnum):
    """What ``--format`` takes."""

    AUTO = "auto"
    OPENAI_JSON = Form.DOCUMENT.value
    OPENAI_JSONL = Form.LINES.value
    TURNLOG = Form.TURNLOG.value
    CLAUDE_CODE = Form.CLAUDE_CODE.value
    CODEX = Form.CODEX.value
    CHATGPT = Form.CHATGPT.value
    OPENAI_CHAT = Form.OPENAI_CHAT.value
    OPENAI_RESPONSES = Form.OPENAI_RESPONSES.value
    ANTHROPIC = Form.ANTHROPIC.value
    GEMINI = Form.GEMINI.value
    BEDROCK = Form.BEDROCK.value


FilesArgument = Annotated[
    list[str], typer.Argument(metavar="FILE...", help="JSON or JSON Lines, gzipped or not; - is standard input.")
]
FormatOption = Annotated[
    FormatChoice,
    typer.Option("--format", help="What the files hold; told from them by default, but for requests to providers."),
]
PrefixOption = Annotated[str, typer.Option("--session-prefix", metavar="TEXT", help="Put before each session's id.")]
OwnerOption = Annotated[
    str | None, typer.Option("--principal", metavar="NAME", help="The owner of the sessions.", show_default=False)
]
SkipOption = Annotated[
    bool, typer.Option("--skip-invalid", help="Leave out what is not valid, and name it at the end.")
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Check the files, write nothing.")]
LongestOption = Annotated[int, typer.Option("--max-line", metavar="MB", help="The longest line, in megabytes.", min=1)]


def import_(
    files: FilesArgument,
    format_: FormatOption = FormatChoice.AUTO,
    prefix: PrefixOption = "",
    principal: OwnerOption = None,
    skip_invalid: SkipOption = False,
    dry_run: DryRunOption = False,
    longest: LongestOption = LONGEST_LINE // _MEGABYTE,
    as_json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Import conversations: OpenAI chat messages, sessions of Claude Code, Codex and ChatGPT, `turnlog export`'s files.

    With --format also whole requests to OpenAI, Anthropic, Gemini or Bedrock. A file is checked whole before anything
    is written. Importing it again stores only what is new in it.
    """
    if files.count("-") > 1:
        raise InvalidValueError("standard input can be imported once")
    form = None if format_ is FormatChoice.AUTO else Form(format_.value)
    for file in files:
        with Source(file) as source:
            importer = Importer(
                source,
                system_clock(),
                form=form,
                prefix=prefix,
                principal=principal,
                skip_invalid=skip_invalid,
                longest=longest * _MEGABYTE,
            )
            _run(importer, source, store, dry_run=dry_run)
            _report(importer.summary, source.place, dry_run=dry_run, as_json=as_json)


def _run(importer: Importer, source: Source, store: str | None, *, dry_run: bool) -> None:
    with progress(f"checking {source.name}", source.size) as moved:
        source.on_read = moved
        importer.check()
    if dry_run:
        return
    with new_or_existing_store(store) as repository, progress(f"storing {source.name}", source.size) as moved:
        source.on_read = moved
        try:
            importer.write(repository)
        except (TurnlogError, KeyboardInterrupt):
            stored = f"{importer.summary.new_events:,} new events are stored"
            say(f"{source.place}: stopped; {stored}, importing again goes on from there")
            raise


def _report(summary: Summary, name: str, *, dry_run: bool, as_json: bool) -> None:
    for skipped in summary.skipped:
        say(f"skipped {name}:{skipped.line}: {skipped.reason}")
    if summary.left_out:
        counts = ", ".join(f"{count:,} {kind}" for kind, count in sorted(summary.left_out.items()))
        say(f"{name}: became no event: {counts}")
    if summary.forks:
        are = "1 session is a way" if len(summary.forks) == 1 else f"{len(summary.forks):,} sessions are ways"
        say(f"{name}: {are} through a conversation that was left behind, {summary.forks[0]!r} the first of them")
    for session_id in summary.expired:
        say(f"skipped session {session_id!r}: it has expired")
    if as_json:
        print_json({"file": name, "dry_run": dry_run, "summary": summary})
    elif dry_run:
        print_line(f"{name}: {summary.sessions:,} sessions with {summary.events:,} events; nothing was written")
    else:
        print_line(
            f"{name}: {summary.new_sessions:,} new sessions, {summary.new_events:,} new events; "
            f"{summary.replayed_events:,} events were there already"
        )
