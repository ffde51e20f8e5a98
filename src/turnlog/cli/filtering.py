"""Every criterion of ``EventFilter`` as an option (F-1 to F-8)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from msgspec import Struct

from turnlog.cli.options import read_event_types, read_message_types, read_time
from turnlog.errors import InvalidValueError
from turnlog.log.event_filter import EventFilter, Match

_PANEL = "Which events"


def _option(*names: str, help: str, metavar: str | None = None) -> Any:  # noqa: A002 - typer's own word
    return typer.Option(*names, help=help, metavar=metavar, show_default=False, rich_help_panel=_PANEL)


ViewOption = Annotated[bool, _option("--view", help="The active view: what a model would be given, in its order.")]
TypesOption = Annotated[
    list[str] | None,
    _option("--type", "-t", metavar="TYPE", help="Messages of this type: system, user, assistant, tool. Repeatable."),
]
EventTypesOption = Annotated[
    list[str] | None,
    _option("--event-type", metavar="NAME", help="Events of this type: MESSAGE, COMPACTION, or your own. Repeatable."),
]
NoSyntheticOption = Annotated[bool, _option("--no-synthetic", help="Without what a compaction wrote.")]
SinceOption = Annotated[
    str | None, _option("--since", metavar="TIME", help="Not before this time (ISO 8601, with zone).")
]
UntilOption = Annotated[str | None, _option("--until", metavar="TIME", help="Not after this time.")]
AfterOption = Annotated[int | None, _option("--after", metavar="POSITION", help="Behind this position.")]
BeforeOption = Annotated[int | None, _option("--before", metavar="POSITION", help="Before this position.")]
KeywordOption = Annotated[
    list[str] | None,
    _option("--keyword", "-k", metavar="TEXT", help="Messages that contain this text, in any case. Repeatable."),
]
MatchOption = Annotated[Match, _option("--match", help="Whether any of several keywords is enough.")]
PatternOption = Annotated[
    str | None, _option("--pattern", metavar="REGEX", help="Messages in which this regular expression finds something.")
]
BranchOption = Annotated[
    str | None, _option("--branch", metavar="PATH", help="What an agent on this branch sees: it and its ancestors.")
]
RootOption = Annotated[bool, _option("--root", help="Events of the root branch only.")]
LastOption = Annotated[
    int | None, _option("--last", "-n", metavar="N", help="The newest N, back to the start of a turn.")
]
WholeTurnsOption = Annotated[
    bool | None, _option("--whole-turns/--no-whole-turns", help="With --last: whether a turn may be cut.")
]
PageOption = Annotated[int | None, _option("--page", metavar="N", help="Page N, from 0, of --page-size events.")]
PageSizeOption = Annotated[int | None, _option("--page-size", metavar="N", help="Events on a page.")]

DEFAULT_PAGE_SIZE = 10


class Criteria(Struct, frozen=True, kw_only=True):
    """The options as they were given."""

    view: bool = False
    types: Sequence[str] | None = None
    event_types: Sequence[str] | None = None
    no_synthetic: bool = False
    since: str | None = None
    until: str | None = None
    after: int | None = None
    before: int | None = None
    keywords: Sequence[str] | None = None
    match: Match = Match.ANY
    pattern: str | None = None
    branch: str | None = None
    root: bool = False
    last: int | None = None
    whole_turns: bool | None = None
    page: int | None = None
    page_size: int | None = None

    def filter(self) -> EventFilter:
        """The filter that they mean; raises :class:`InvalidValueError`."""
        options: dict[str, Any] = {}
        if self.root and self.branch is not None:
            raise InvalidValueError("--root and --branch exclude each other")
        if self.root or self.branch is not None:
            options["branch"] = self.branch
        page_size = self.page_size
        if self.page is not None and page_size is None:
            page_size = DEFAULT_PAGE_SIZE
        return EventFilter(
            active_view=self.view,
            message_types=read_message_types(self.types or ()),
            event_types=read_event_types(self.event_types or ()),
            exclude_synthetic=self.no_synthetic,
            since=read_time(self.since, "--since"),
            until=read_time(self.until, "--until"),
            after=self.after,
            before=self.before,
            keywords=self.keywords or (),
            match=self.match,
            pattern=_compiled(self.pattern),
            last=self.last,
            whole_turns=self.whole_turns,
            page=self.page,
            page_size=page_size,
            **options,
        )


def _compiled(pattern: str | None) -> re.Pattern[str] | None:
    if pattern is None:
        return None
    try:
        return re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise InvalidValueError(f"--pattern: {error}") from error
