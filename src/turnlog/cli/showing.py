"""``show`` and ``expand``: a log or a view, by turns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import typer

from turnlog.cli import filtering
from turnlog.cli.event_json import event_json
from turnlog.cli.options import JsonOption, SessionArgument, StoreOption
from turnlog.cli.stores import existing_service
from turnlog.cli.terminal import output, print_json
from turnlog.cli.transcript import Setting, Transcript
from turnlog.cli.turn_index import TurnIndex, read_turn_index
from turnlog.errors import EventNotFoundError, SessionNotFoundError
from turnlog.log.event_filter import EventFilter, Match
from turnlog.log.events import EventType, SessionEvent
from turnlog.log.session import Session
from turnlog.log.view import Range, read_boundary, segments, without
from turnlog.log.windows import Window
from turnlog.service import SessionService

FullOption = Annotated[bool, typer.Option("--full", help="Show long texts whole.")]
AsOfOption = Annotated[
    int | None,
    typer.Option("--as-of", metavar="VERSION", help="As it was at this version of the log.", show_default=False),
]

_NEWEST_BOUNDARY = EventFilter(event_types={EventType.COMPACTION}, window=Window.last(1, whole_turns=False))


def show(
    session: SessionArgument,
    view: filtering.ViewOption = False,
    as_of: AsOfOption = None,
    last: filtering.LastOption = None,
    whole_turns: filtering.WholeTurnsOption = None,
    page: filtering.PageOption = None,
    page_size: filtering.PageSizeOption = None,
    types: filtering.TypesOption = None,
    event_types: filtering.EventTypesOption = None,
    no_synthetic: filtering.NoSyntheticOption = False,
    since: filtering.SinceOption = None,
    until: filtering.UntilOption = None,
    after: filtering.AfterOption = None,
    before: filtering.BeforeOption = None,
    keywords: filtering.KeywordOption = None,
    match: filtering.MatchOption = Match.ANY,
    pattern: filtering.PatternOption = None,
    branch: filtering.BranchOption = None,
    root: filtering.RootOption = False,
    full: FullOption = False,
    as_json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Show a session by turns: its log, or with --view what a model would be given."""
    criteria = filtering.Criteria(
        view=view,
        types=types,
        event_types=event_types,
        no_synthetic=no_synthetic,
        since=since,
        until=until,
        after=after,
        before=before,
        keywords=keywords,
        match=match,
        pattern=pattern,
        branch=branch,
        root=root,
        last=last,
        whole_turns=whole_turns,
        page=page,
        page_size=page_size,
    )
    selected = criteria.filter()
    with existing_service(store) as service:
        found = _events(service, session, selected, as_of)
        if as_json:
            _print_json(service, session, found)
        else:
            print_events(service, session, found, as_of, full=full)


def expand(
    session: SessionArgument,
    event: Annotated[
        str, typer.Argument(metavar="EVENT", help="A boundary or an event of its summary: its position, or its id.")
    ],
    full: FullOption = False,
    as_json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Show what a compaction has covered."""
    with existing_service(store) as service:
        found = service.expand(session, _event_id(service, session, event))
        if as_json:
            _print_json(service, session, found)
        else:
            print_events(service, session, found, None, full=full)


def _events(
    service: SessionService, session_id: str, selected: EventFilter, as_of: int | None
) -> Iterable[SessionEvent]:
    """A window is read at once, as it is to be read from its end; all else as it is printed."""
    if selected.window.newest is not None:
        return service.events(session_id, selected, as_of=as_of)
    return service.iter_events(session_id, selected, as_of=as_of)


def _print_json(service: SessionService, session_id: str, found: Iterable[SessionEvent]) -> None:
    turns: TurnIndex | None = None
    for event in found:
        if turns is None:
            turns = read_turn_index(service.repository, session_id, service.version(session_id))
        print_json(event_json(event, turns))


def print_events(
    service: SessionService, session_id: str, found: Iterable[SessionEvent], as_of: int | None, *, full: bool = False
) -> None:
    """Events of a session under its headline, as a transcript."""
    session = service.find(session_id)
    if session is None:
        raise SessionNotFoundError(session_id)
    # Asked for first: a version that the log does not have is told before anything is printed.
    version = service.repository.count(session_id, EventFilter.all(), as_of=as_of)
    turns = read_turn_index(service.repository, session_id, version)
    outside = _outside_of_view(service, session_id, version)
    console = output()
    console.print(_headline(session, version, turns.number_at(version), as_of))
    transcript = Transcript(console, Setting(turns, outside, version, full))
    count = transcript.show(found)
    transcript.end()
    if not count:
        console.print("no events")


def _headline(session: Session, version: int, turns: int, as_of: int | None) -> str:
    facts = [f"{version:,} events in {turns:,} turns", f"created {session.created_at:%Y-%m-%d %H:%M} UTC"]
    if session.principal is not None:
        facts.insert(0, f"of {session.principal}")
    if session.expires_at is not None:
        facts.append(f"expires {session.expires_at:%Y-%m-%d %H:%M} UTC")
    if as_of is not None:
        facts.append(f"as of version {as_of}")
    return f"{session.id}: {', '.join(facts)}\n"


def _outside_of_view(service: SessionService, session_id: str, version: int) -> tuple[Range, ...]:
    newest = service.events(session_id, _NEWEST_BOUNDARY, as_of=version, missing_ok=True)
    if not newest:
        return ()
    boundary = read_boundary(newest[0].payload, newest[0].position or 0)
    return without(((1, version),), segments(boundary, version))


def _event_id(service: SessionService, session_id: str, event: str) -> str:
    """The id that was given, or that of the event at the position that was given."""
    if not event.isdecimal() or not event.isascii():
        return event
    position = int(event)
    at = EventFilter(after=max(position - 1, 0), before=position + 1)
    found = service.events(session_id, at) if position else []
    if not found:
        raise EventNotFoundError(session_id, f"at position {position}")
    return found[0].id
