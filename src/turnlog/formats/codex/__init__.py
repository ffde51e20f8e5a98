"""Session files of the Codex CLI ("rollouts"): JSON Lines that wrap items of OpenAI's Responses API.

Both layouts are read: lines of ``{timestamp, type, payload}``, and the older ones of bare items behind a first line
that says whose they are. :func:`survey` reads all lines once, :func:`read` gives the entries. What Codex put into the
conversation by itself, and what it notes beside it, becomes events of types that begin with ``CODEX.``.
"""

from turnlog.formats.codex.reading import read
from turnlog.formats.codex.survey import Survey, looks_like, survey

__all__ = ["Survey", "looks_like", "read", "survey"]
