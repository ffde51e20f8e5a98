"""``compact``: what a plain-window compaction would do, and doing it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from turnlog.cli.options import JsonOption, SessionArgument, StoreOption
from turnlog.cli.stores import existing_service
from turnlog.cli.terminal import print_json, print_line
from turnlog.compaction import CompactionResult, WindowCompactionStrategy
from turnlog.errors import InvalidValueError
from turnlog.log.events import SessionEvent
from turnlog.log.view import ranges_of

LastTurnsOption = Annotated[
    int | None, typer.Option("--last-turns", metavar="N", help="Keep the newest N turns.", show_default=False)
]
LastEventsOption = Annotated[
    int | None,
    typer.Option("--last-events", metavar="N", help="Keep the newest N messages, turns whole.", show_default=False),
]
MaxTokensOption = Annotated[
    int | None,
    typer.Option(
        "--max-tokens", metavar="N", help="Keep what fits into N tokens, pinned messages included.", show_default=False
    ),
]
ApplyOption = Annotated[bool, typer.Option("--apply", help="Do it. Without this nothing is written.")]

#: Ranges of positions shown on one line.
_MOST_SPANS = 8


def compact(
    session: SessionArgument,
    last_turns: LastTurnsOption = None,
    last_events: LastEventsOption = None,
    max_tokens: MaxTokensOption = None,
    apply: ApplyOption = False,
    as_json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Show what a smaller view would hold; with --apply, make it the view. The log stays: this can be rewound."""
    if sum(given is not None for given in (last_turns, last_events, max_tokens)) != 1:
        raise InvalidValueError("say one of --last-turns, --last-events and --max-tokens")
    strategy = WindowCompactionStrategy(last_turns=last_turns, last_events=last_events, max_tokens=max_tokens)
    with existing_service(store) as service:
        result = service.compact(session, strategy, dry_run=not apply)
        if as_json:
            print_json(_as_json(result))
        else:
            print_result(session, result)


def print_result(session: str, result: CompactionResult) -> None:
    """What a compaction did, or would do."""
    if result.is_unchanged:
        print_line(f"{session}: unchanged; {result.reason}")
        return
    for what, events in (
        ("covered", result.covered_events),
        ("pinned", result.pinned_events),
        ("kept", result.preserved_events),
    ):
        print_line(f"{what:<8}{len(events):>7,} events  {_places(events)}".rstrip())
    print_line(f"{'tokens':<8}{result.tokens_before:>7,} before, {result.tokens_after:,} after")
    if result.boundary is None:
        print_line("Nothing was written: say --apply to do it.")
    else:
        position = result.boundary.position or 1
        print_line(f"{session}: compacted, version {position}; to undo it: rewind to {position - 1}")


def _places(events: Sequence[SessionEvent]) -> str:
    spans = ranges_of(event.position or 0 for event in events)
    shown = ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in spans[:_MOST_SPANS])
    return f"at {shown}{', …' if len(spans) > _MOST_SPANS else ''}" if shown else ""


def _as_json(result: CompactionResult) -> dict[str, object]:
    return {
        "unchanged": result.is_unchanged,
        "reason": result.reason,
        "covered": [event.position for event in result.covered_events],
        "pinned": [event.position for event in result.pinned_events],
        "kept": [event.position for event in result.preserved_events],
        "tokens_before": result.tokens_before,
        "tokens_after": result.tokens_after,
        "boundary": None if result.boundary is None else result.boundary.position,
    }
