"""Worker processes: started, spoken to in lines of JSON, and never left behind."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Generator, Iterable, Sequence
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import Any, Self

from tests.conftest import ROOT


class WorkerProcess:
    """A process that runs one role of ``tests.concurrency.worker``, or another module of its own."""

    def __init__(self, role: str, module: str = "tests.concurrency.worker", **arguments: Any) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, role, json.dumps(arguments)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    def tell(self, message: Any) -> None:
        """Say something to the worker."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()

    def hear(self) -> Any:
        """The next that it says; its own traceback is on standard error if it says no more."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, f"the worker ended with {self._process.wait()}"
        return json.loads(line)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.__exit__(kind, error, trace)


@contextmanager
def workers(
    role: str, each: Iterable[dict[str, Any]], module: str = "tests.concurrency.worker"
) -> Generator[list[WorkerProcess], None, None]:
    """One worker for each set of arguments; all have imported what they need and wait."""
    with ExitStack() as stack:
        started = [stack.enter_context(WorkerProcess(role, module, **arguments)) for arguments in each]
        for worker in started:
            assert worker.hear() == "ready"
        yield started


def ask_all(workers: Sequence[WorkerProcess], message: Any) -> list[Any]:
    """Say the same to all at once; what each answers."""
    for worker in workers:
        worker.tell(message)
    return [worker.hear() for worker in workers]


def in_lockstep(workers: Sequence[WorkerProcess]) -> list[Any]:
    """Let all run; each that says ``meet`` waits until all that still run have said it. What each says at its end."""
    running = dict(enumerate(workers))
    ended: dict[int, Any] = {}
    for worker in workers:
        worker.tell("go")
    while running:
        for number, worker in list(running.items()):
            message = worker.hear()
            if message != "meet":
                ended[number] = message
                del running[number]
        for worker in running.values():
            worker.tell("go on")
    return [ended[number] for number in sorted(ended)]
