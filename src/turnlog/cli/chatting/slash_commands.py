"""Commands that are typed in a chat: a word after a slash."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from turnlog.cli.chatting.screen import Screen
from turnlog.cli.chatting.talk import Talk
from turnlog.cli.compacting import print_result
from turnlog.cli.finding import print_hits
from turnlog.cli.showing import print_events
from turnlog.errors import InvalidValueError
from turnlog.log.event_filter import EventFilter
from turnlog.log.queries import EventQuery

#: Turns that ``/compact`` keeps.
_KEPT: Final = 2


class SlashCommand(Struct, frozen=True):
    """How it is written, what it does, and whether it needs a session that is there."""

    usage: str
    help: str
    run: Callable[[Talk, Screen, str], None]
    needs_session: bool = True


def run_slash_command(talk: Talk, screen: Screen, line: str) -> None:
    """Do what the line says; :class:`EOFError` is the wish to end."""
    name, _, rest = line.removeprefix("/").partition(" ")
    command = COMMANDS.get(name)
    if command is None:
        raise InvalidValueError(f"there is no command /{name:.40}: /help lists them; // begins a line with a slash")
    if command.needs_session and not talk.is_begun:
        raise InvalidValueError("nothing has been said yet")
    command.run(talk, screen, rest.strip())


def _view(talk: Talk, _screen: Screen, _rest: str) -> None:
    found = talk.service.events(talk.session_id, EventFilter.active())
    print_events(talk.service, talk.session_id, found, None)


def _log(talk: Talk, _screen: Screen, _rest: str) -> None:
    print_events(talk.service, talk.session_id, talk.service.iter_events(talk.session_id, EventFilter.all()), None)


def _search(talk: Talk, _screen: Screen, rest: str) -> None:
    if not rest:
        raise InvalidValueError("/search TERM: what is to be found?")
    print_hits(talk.service, talk.session_id, EventQuery(terms=(rest,)))


def _compact(talk: Talk, _screen: Screen, rest: str) -> None:
    if rest and not (rest.isascii() and rest.isdecimal()):
        raise InvalidValueError(f"/compact N: {rest:.40} is no number of turns to keep")
    print_result(talk.session_id, talk.compact(int(rest) if rest else _KEPT))


def _fork(talk: Talk, screen: Screen, rest: str) -> None:
    before = talk.session_id
    screen.note(f"now in {talk.fork(rest or None).id}, a copy of {before}")


def _help(_talk: Talk, screen: Screen, _rest: str) -> None:
    width = max(len(command.usage) for command in COMMANDS.values())
    for command in COMMANDS.values():
        screen.note(f"{command.usage:{width}}  {command.help}")


def _quit(_talk: Talk, _screen: Screen, _rest: str) -> None:
    raise EOFError


COMMANDS: Final = {
    "view": SlashCommand("/view", "what the model will be given", _view),
    "log": SlashCommand("/log", "all that was said, and where compaction was at work", _log),
    "search": SlashCommand("/search TERM", "where the term was said, in the whole log", _search),
    "compact": SlashCommand("/compact [N]", f"summarise all but the newest N turns ({_KEPT})", _compact),
    "fork": SlashCommand("/fork [ID]", "go on in a copy of the session", _fork),
    "help": SlashCommand("/help", "this list", _help, needs_session=False),
    "quit": SlashCommand("/quit", "end, as Ctrl-D does", _quit, needs_session=False),
}
