"""``chat``: talk with a model over a session that is kept."""

from __future__ import annotations

import importlib
import secrets
import sys
from datetime import UTC, datetime
from importlib.util import find_spec
from typing import Annotated

import typer

from turnlog.cli.chatting.choosing import Provider, Wanted, chosen_model
from turnlog.cli.chatting.screen import Screen
from turnlog.cli.chatting.slash_commands import run_slash_command
from turnlog.cli.chatting.talk import Talk
from turnlog.cli.options import StoreOption
from turnlog.cli.stores import new_or_existing_store
from turnlog.errors import TurnlogError
from turnlog.log.names import check_name
from turnlog.service import SessionService

SessionOption = Annotated[
    str | None, typer.Argument(metavar="[SESSION]", help="The session to go on in, or its new id.", show_default=False)
]
ProviderOption = Annotated[
    Provider | None, typer.Option("--provider", help="Which API the model speaks.", show_default=False)
]
ModelOption = Annotated[
    str | None,
    typer.Option("--model", metavar="NAME", envvar="TURNLOG_MODEL", help="The provider's name.", show_default=False),
]
BaseUrlOption = Annotated[
    str | None,
    typer.Option("--base-url", metavar="URL", help="Of a server that speaks a provider's API.", show_default=False),
]
SystemOption = Annotated[
    str | None, typer.Option("--system", metavar="TEXT", help="Instructions for the model.", show_default=False)
]


def chat(
    session: SessionOption = None,
    provider: ProviderOption = None,
    model: ModelOption = None,
    base_url: BaseUrlOption = None,
    system: SystemOption = None,
    store: StoreOption = None,
) -> None:
    """Talk with a model; /help lists what else can be typed. Lines from a pipe are answered one after the other."""
    session_id = _new_id() if session is None else check_name("session id", session)
    screen = Screen(is_dialogue=sys.stdin.isatty())
    with new_or_existing_store(store) as repository, chosen_model(Wanted(provider, model, base_url)) as chosen:
        service = SessionService(repository, allow_system_messages=True)
        talk = Talk(service, chosen, session_id, system, screen.call)
        _greet(talk, screen)
        hold(talk, screen)
        if talk.is_begun:
            screen.note(f"to go on: turnlog chat {talk.session_id}")


def hold(talk: Talk, screen: Screen) -> None:
    """Answer line after line, until there is none. What goes wrong ends it only where nobody can try again."""
    while True:
        try:
            line = _next_line(screen)
            if line is None:
                return
            _answer(talk, screen, line)
        except EOFError:
            return
        except KeyboardInterrupt:
            if not screen.is_dialogue:
                raise
            screen.note("\nstopped. Ctrl-D ends the chat.")  # the terminal has written ^C
        except TurnlogError as error:
            if not screen.is_dialogue:
                raise
            screen.note(f"turnlog: {error}")


def _answer(talk: Talk, screen: Screen, line: str) -> None:
    said = line
    if not said.strip():
        said = talk.next_request() or ""
        if said and screen.is_dialogue:
            screen.note(f"(you say: {said})")
    if not said.strip():
        return
    if said.startswith("/") and not said.startswith("//"):
        run_slash_command(talk, screen, said)
    else:
        screen.reply(talk.say(said[1:] if said.startswith("//") else said))


def _next_line(screen: Screen) -> str | None:
    if not screen.is_dialogue:
        line = sys.stdin.readline()
        return line.rstrip("\r\n") if line else None
    if find_spec("readline") is not None:
        importlib.import_module("readline")  # it lets the line be edited
    try:
        return input(screen.prompt)
    except EOFError:
        screen.note("")
        raise


def _new_id() -> str:
    """An id that can be read and typed."""
    return f"chat-{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


def _greet(talk: Talk, screen: Screen) -> None:
    state = f"{talk.service.version(talk.session_id):,} events" if talk.is_begun else "new"
    if not screen.is_dialogue:
        return
    screen.note(f"session {talk.session_id} ({state}), {talk.chosen.name}. /help lists commands, Ctrl-D ends.")
    if talk.chosen.requests:
        screen.note("Press Enter to say what the example says next.")
