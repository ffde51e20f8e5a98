"""``turnlog``: the entry point. It explains what is missing, and turns every error into one line and an exit code."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NoReturn

from turnlog.errors import MissingExtraError, StoreError, TurnlogError

#: Exit codes that belong to no error class: they are the shell's own (128 + signal).
INTERRUPTED: Final = 130
BROKEN_PIPE: Final = 141
UNEXPECTED: Final = 1

#: Set to anything, it shows the traceback of an error that turnlog did not foresee.
TRACEBACK_VARIABLE: Final = "TURNLOG_TRACEBACK"


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit; ``arguments`` stand in for the process's own."""
    _open_closed_streams()
    with reporting():
        try:
            from turnlog.cli.app import run
        except ModuleNotFoundError as error:
            package = (error.name or "").partition(".")[0]
            if package == "turnlog":
                raise
            raise MissingExtraError("cli", package) from error
        run(sys.argv[1:] if arguments is None else arguments)
    sys.exit(0)


def _open_closed_streams() -> None:
    """A stream that whoever started us has closed is an empty one: the next file must not get its number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - open until the end


@contextmanager
def reporting() -> Generator[None]:
    """Turn what is raised inside into a line on standard error and an exit code; flush what was printed."""
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except TurnlogError as error:
        fail(str(error), error.exit_code)
    except KeyboardInterrupt:
        fail("interrupted", INTERRUPTED)
    except BrokenPipeError:
        # Whoever read our output has had enough: `turnlog show … | head` is no error to speak of.
        _silence(sys.stdout)
        sys.exit(BROKEN_PIPE)
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        fail(f"{place}{error.strerror or error}", StoreError.exit_code)
    except Exception as error:  # noqa: BLE001 - whoever typed a command is not to read a traceback
        if os.environ.get(TRACEBACK_VARIABLE):
            traceback.print_exc()
        fail(f"unexpected {type(error).__name__}: {error} (set {TRACEBACK_VARIABLE}=1 to see where)", UNEXPECTED)


def fail(message: str, exit_code: int) -> NoReturn:
    """Say what is wrong, and exit."""
    from turnlog.cli.escaping import printable

    line = " ".join(printable(message).split())
    try:
        sys.stderr.write(f"turnlog: {line}\n")
        sys.stderr.flush()
    except OSError:
        _silence(sys.stderr)
    sys.exit(exit_code)


def _silence(stream: object) -> None:
    """Let the interpreter's last flush go nowhere instead of failing."""
    fileno = getattr(stream, "fileno", None)
    if fileno is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), fileno())


if __name__ == "__main__":
    main()
