"""``sessions`` and ``search``: what there is, and where something was said."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from turnlog.cli import filtering
from turnlog.cli.content import Glyphs
from turnlog.cli.escaping import one_line
from turnlog.cli.event_json import event_json, session_json
from turnlog.cli.options import JsonOption, SessionArgument, StoreOption, read_message_types, read_time
from turnlog.cli.snippets import snippet
from turnlog.cli.stores import existing_service
from turnlog.cli.terminal import output, print_json, say
from turnlog.cli.transcript import ROLE_STYLES
from turnlog.cli.turn_index import read_turn_index
from turnlog.errors import InvalidValueError
from turnlog.log.event_filter import EventFilter, Match
from turnlog.log.events import SessionEvent
from turnlog.log.messages import MessageType
from turnlog.log.queries import EventQuery
from turnlog.log.search_text import search_text
from turnlog.log.session import Session
from turnlog.log.windows import Window
from turnlog.service import SessionService
from turnlog.storage.protocol import DEFAULT_PAGE, SessionPage

#: Columns of the list of sessions.
_LONGEST_ID_IN_COLUMN = 30
_LONGEST_OWNER = 16

_OPENING = EventFilter(message_types={MessageType.USER}, exclude_synthetic=True, window=Window.page(0, 1))

PrincipalOption = Annotated[
    str | None, typer.Option("--principal", metavar="NAME", help="Sessions of this owner.", show_default=False)
]
MetadataOption = Annotated[
    str | None,
    typer.Option("--metadata", metavar="KEY=VALUE", help="Sessions with this in an indexed key.", show_default=False),
]
LimitOption = Annotated[int, typer.Option("--limit", metavar="N", help="At most so many.")]
CursorOption = Annotated[
    str | None, typer.Option("--cursor", metavar="CURSOR", help="Where the page before ended.", show_default=False)
]
OldestOption = Annotated[bool, typer.Option("--oldest-first", help="In the order in which they were made.")]


def sessions(
    principal: PrincipalOption = None,
    metadata: MetadataOption = None,
    limit: LimitOption = DEFAULT_PAGE,
    cursor: CursorOption = None,
    oldest_first: OldestOption = False,
    as_json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """List sessions, the newest first."""
    with existing_service(store) as service:
        page = _page(service, principal, metadata, limit, cursor, newest_first=not oldest_first)
        if as_json:
            for session in page:
                print_json(session_json(session, service.version(session.id, missing_ok=True)))
        elif page.sessions:
            _print_sessions(service, page)
        else:
            say("no sessions")
        if page.cursor is not None:
            say(f"more: --cursor {page.cursor}")


def _page(
    service: SessionService,
    principal: str | None,
    metadata: str | None,
    limit: int,
    cursor: str | None,
    *,
    newest_first: bool,
) -> SessionPage:
    if metadata is None:
        return service.list(principal=principal, limit=limit, cursor=cursor, newest_first=newest_first)
    key, equals, value = metadata.partition("=")
    if not key or not equals:
        raise InvalidValueError(f"--metadata: write KEY=VALUE, not {metadata!r}")
    if principal is not None:
        raise InvalidValueError("--principal and --metadata exclude each other")
    return service.find_by_metadata(key, value, limit=limit, cursor=cursor, newest_first=newest_first)


def _print_sessions(service: SessionService, page: SessionPage) -> None:
    """One line a session; an id too long for its column has a line of its own, as ids are there to be copied."""
    console = output()
    ids = max(7, min(max(len(session.id) for session in page), _LONGEST_ID_IN_COLUMN))
    owners = min(max(len(session.principal or "") for session in page), _LONGEST_OWNER)
    heading = f"{'session':{ids}}  events  created (UTC)     {'owner' if owners else '':{owners}}"
    console.print(Text(f"{heading.rstrip()}  begins with" if owners else f"{heading}begins with", style="dim"))
    for session in page:
        name = Text(session.id, style="bold")
        if len(session.id) > ids:
            console.print(name, soft_wrap=True)
            name = Text()
        name.pad_right(ids - name.cell_len)
        facts = f"  {service.version(session.id, missing_ok=True):>6,}  {session.created_at:%Y-%m-%d %H:%M}  "
        owner = f"{(session.principal or ''):{owners}.{owners}}  " if owners else ""
        line = Text.assemble(name, (facts, "dim"), (owner, "green"), _opening(service, session))
        line.truncate(console.width, overflow="ellipsis")
        console.print(line)


def _opening(service: SessionService, session: Session) -> str:
    """The first thing that a user said."""
    found = service.events(session.id, _OPENING, missing_ok=True)
    return one_line(found[0].content.text[:200]) if found else ""


TermsArgument = Annotated[
    list[str] | None, typer.Argument(metavar="TERM...", help="What to look for, literally, in any case.")
]
SummariesOption = Annotated[bool, typer.Option("--summaries", help="Look into summaries too.")]
HitsOption = Annotated[int, typer.Option("--page-size", metavar="N", help="Hits on a page.")]
NumberOption = Annotated[int, typer.Option("--page", metavar="N", help="Page N, from 0.")]


def search(
    session: SessionArgument,
    terms: TermsArgument = None,
    match: filtering.MatchOption = Match.ANY,
    types: filtering.TypesOption = None,
    since: filtering.SinceOption = None,
    until: filtering.UntilOption = None,
    summaries: SummariesOption = False,
    after: filtering.AfterOption = None,
    page: NumberOption = 0,
    page_size: HitsOption = 20,
    as_json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Find where something was said: in the whole log, what compactions have covered included."""
    query = EventQuery(
        terms=tuple(terms or ()),
        match=match,
        since=read_time(since, "--since"),
        until=read_time(until, "--until"),
        message_types=read_message_types(types or ()),
        include_summaries=summaries,
        page=page,
        page_size=page_size,
        after=after,
    )
    with existing_service(store) as service:
        print_hits(service, session, query, as_json=as_json)


def print_hits(service: SessionService, session: str, query: EventQuery, *, as_json: bool = False) -> None:
    """What a search finds, a line each."""
    found = service.search(session, query)
    until_position = found.events[-1].position or 0 if found.events else 0
    turns = read_turn_index(service.repository, session, until_position)
    console = output()
    for event in found.events:
        if as_json:
            print_json(event_json(event, turns))
        else:
            _print_hit(console, event, turns.number_at(event.position or 0), query)
    if not found.events:
        say("nothing found")
    if found.cursor is not None:
        say(f"more: --after {found.cursor}")


def _print_hit(console: Console, event: SessionEvent, turn: int, query: EventQuery) -> None:
    message = event.content
    place = Text(f"turn {turn:<3} {event.position:>5}  ", style="dim")
    role = Text(f"{message.type.value:9} ", style=ROLE_STYLES[message.type])
    width = max(20, console.width - place.cell_len - role.cell_len)
    hit = snippet(search_text(message), query.terms, width, Glyphs.of(console).ellipsis)
    console.print(Text.assemble(place, role, hit))
