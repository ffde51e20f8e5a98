"""A proxy in front of a server: it counts round trips, and loses what it is told to lose."""

from __future__ import annotations

import random
import socket
import struct
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Final, Literal, TypeAlias
from urllib.parse import urlsplit, urlunsplit

#: What becomes of a statement: its answer is lost; or the client is cut off before the server hears of it, and the
#: server hears of it later, or never.
Fate: TypeAlias = Literal["answer lost", "late", "never"]

_LONGEST: Final = 65_536


class Link:
    """One connection through the proxy: what the server last said of its transaction, and what was asked of it.

    ``inserts``: the last that was asked of it adds events.
    """

    def __init__(self, client: socket.socket, server: socket.socket) -> None:
        self.client = client
        self.server = server
        self.pid = 0
        self.status = b"I"
        self.statements: dict[bytes, str] = {}
        self.held = b""
        self.is_asking = True
        self.inserts = False

    def close(self) -> None:
        for end in (self.client, self.server):
            hang_up(end)


def hang_up(end: socket.socket) -> None:
    """Close it, with whoever waits on it."""
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()


class Proxy:
    """Listens on a port of its own. ``judge`` is asked of every commit and of every statement that commits itself.

    It is given the link and what is on its way: ``"commit"`` to the server, ``"committed"`` or ``"appended"`` (by a
    statement that commits itself) from it. It says what becomes of that; None: nothing.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._target = (parts.hostname or "127.0.0.1", parts.port or 5432)
        self._listener = socket.create_server(("127.0.0.1", 0))
        port = self._listener.getsockname()[1]
        user = parts.netloc.rpartition("@")[0] or "postgres"
        plain = "sslmode=disable&gssencmode=disable"
        query = f"{parts.query}&{plain}" if parts.query else plain
        self.url = urlunsplit(parts._replace(netloc=f"{user}@127.0.0.1:{port}", query=query))
        self.judge: Callable[[Link, str], Fate | None] = lambda _link, _what: None
        self.round_trips = 0
        self.struck = 0
        self.links: set[Link] = set()
        self.held_back: list[Link] = []
        self.has_struck = threading.Event()
        self.is_refusing = False
        self._is_closed = False
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while not self._is_closed:
            try:
                client, _ = self._listener.accept()
                if self.is_refusing:
                    hang_up(client)
                    continue
                server = socket.create_connection(self._target)
            except OSError:
                continue
            for end in (client, server):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            link = Link(client, server)
            self.links.add(link)
            for pump in (self._ask, self._answer):
                threading.Thread(target=self._pump, args=(pump, link), daemon=True).start()

    def _pump(self, pump: Callable[[Link], None], link: Link) -> None:
        with suppress(OSError, struct.error):
            pump(link)
        if not link.held:
            link.close()
        self.links.discard(link)

    def _ask(self, link: Link) -> None:
        """From the client to the server."""
        begun = _exactly(link.client, 4)
        link.server.sendall(begun + _exactly(link.client, struct.unpack("!I", begun)[0] - 4))
        while True:
            kind, body = _message(link.client)
            if not link.is_asking:
                link.is_asking = True
                self.round_trips += 1
            if self._is_commit(link, kind, body) and (fate := self.judge(link, "commit")) is not None:
                self._cut_off(link, _packed(kind, body), fate)
                return
            link.server.sendall(_packed(kind, body))

    def _is_commit(self, link: Link, kind: bytes, body: bytes) -> bool:
        if kind == b"P":
            name, text, _ = body.split(b"\0", 2)
            link.statements[name] = text.decode()
        if kind == b"B":
            _, name, _ = body.split(b"\0", 2)
            bound = link.statements.get(name, "")
            link.inserts = "INSERT INTO event" in bound or (link.inserts and bound == "COMMIT")
            return bound == "COMMIT"
        return kind == b"Q" and body == b"COMMIT\0"

    def _cut_off(self, link: Link, message: bytes, fate: Fate) -> None:
        """The client hears no more; the server keeps waiting for what was on its way."""
        link.held = message
        self.struck += 1
        if fate == "late":
            # What ends the message is sent when it is let through.
            self.held_back.append(link)
        hang_up(link.client)
        if fate == "never":
            hang_up(link.server)
        self.has_struck.set()

    def let_through(self) -> None:
        """Send what was held back, and wait until the server has dealt with it."""
        for link in self.held_back:
            rest = b"" if link.held[:1] == b"Q" else _packed(b"E", b"\0\0\0\0\0") + _packed(b"S", b"")
            link.server.sendall(link.held + rest)
            with suppress(OSError):
                while True:
                    kind, _ = _message(link.server)
                    if kind == b"Z":
                        break
            hang_up(link.server)
        self.held_back.clear()

    def _answer(self, link: Link) -> None:
        """From the server to the client."""
        while True:
            kind, body = _message(link.server)
            if kind == b"K":
                link.pid = struct.unpack("!I", body[:4])[0]
            if kind == b"Z":
                link.status = body
                link.is_asking = False
            what = _taking_effect(body, link.status) if kind == b"C" else None
            if what is not None and self.judge(link, what) is not None:
                self.struck += 1
                link.close()
                self.has_struck.set()
                return
            link.client.sendall(_packed(kind, body))

    def cut_all(self) -> None:
        """Hang up on everybody."""
        for link in list(self.links):
            link.close()

    def close(self) -> None:
        self._is_closed = True
        hang_up(self._listener)
        self.cut_all()


def _taking_effect(tag: bytes, status: bytes) -> str | None:
    """What of a statement's completion makes its effect last."""
    if tag == b"COMMIT\0":
        return "committed"
    return "appended" if status == b"I" and tag.startswith(b"INSERT 0 1\0") else None


def _packed(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!I", len(body) + 4) + body


def _message(end: socket.socket) -> tuple[bytes, bytes]:
    head = _exactly(end, 5)
    return head[:1], _exactly(end, struct.unpack("!I", head[1:])[0] - 4)


def _exactly(end: socket.socket, size: int) -> bytes:
    parts: list[bytes] = []
    while size:
        part = end.recv(min(size, _LONGEST))
        if not part:
            raise OSError("the other end has hung up")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


@contextmanager
def proxied(url: str) -> Generator[Proxy]:
    """A proxy in front of the server at ``url``."""
    proxy = Proxy(url)
    try:
        yield proxy
    finally:
        proxy.close()


def at_random(seed: int, rate: float) -> Callable[[Link, str], Fate | None]:
    """A judge that lets so many of them come to grief: answers are lost, commits never arrive."""
    chance = random.Random(seed)  # noqa: S311 - repeatable
    fates: dict[str, Fate] = {"commit": "never", "committed": "answer lost", "appended": "answer lost"}
    return lambda _link, what: fates[what] if chance.random() < rate else None
