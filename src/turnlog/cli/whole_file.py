"""A file that appears under its name when it is whole."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Generator
from pathlib import Path

from turnlog.errors import InvalidValueError, StoreUnavailableError


@contextlib.contextmanager
def replacing(target: Path, *, like: Path | None = None) -> Generator[Path]:
    """An empty file to write to, which takes the target's place at the end of the block, or is gone where that fails.

    Links are followed. It may be read by whoever may read the file that it replaces, or ``like`` where there is none.
    """
    target = Path(os.path.realpath(target))
    if target.is_dir():
        raise InvalidValueError(f"{target} is a folder: name the file to write")
    if not target.parent.is_dir():
        raise StoreUnavailableError(f"there is no folder {target.parent}")
    partial = target.with_name(f".turnlog-{secrets.token_hex(8)}.partial")
    try:
        _create(partial, target, like)
    except OSError as error:
        raise StoreUnavailableError(f"{target} cannot be written: {error.strerror}") from error
    try:
        yield partial
        _sync(partial)
        partial.replace(target)
        _sync(target.parent)
    finally:
        partial.unlink(missing_ok=True)


def _create(partial: Path, target: Path, like: Path | None) -> None:
    is_there = target.exists()
    model = target if is_there else like
    mode = 0o666 if model is None else stat.S_IMODE(model.stat().st_mode)
    os.close(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode))
    if is_there:
        partial.chmod(mode)  # whatever is masked in new files


def _sync(path: Path) -> None:
    """Make contents, or a folder's names, durable; not every platform can."""
    if os.name != "posix":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
