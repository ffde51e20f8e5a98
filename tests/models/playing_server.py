"""A server that plays whole answers and streams as a provider sent them, and keeps the bodies of the requests.

The stand-in that others wrote says text and calls; what it does not know, such as reasoning, is played from here.
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self


class PlayingServer:
    """Answers each request with the next thing that was put in: a JSON object, or a list of a stream's events."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self._answers: list[Any] = []
        playing = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                playing.bodies.append(json.loads(body))
                answer = playing._answers.pop(0)
                is_stream = isinstance(answer, list)
                data = _events(answer) if is_stream else json.dumps(answer).encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream" if is_stream else "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the standard library's signature
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    @property
    def url(self) -> str:
        """The address; OpenAI's SDK wants ``/v1`` behind it."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def play(self, *answers: Any) -> None:
        """Answer the next requests with these."""
        self._answers += answers

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _events(events: list[Any]) -> bytes:
    lines: list[str] = []
    for event in events:
        if isinstance(event, dict) and "type" in event:
            lines.append(f"event: {event['type']}\n")
        lines.append(f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n")
    return "".join(lines).encode()
