"""Session files of Claude Code: JSON Lines, one block of a message a line, linked by ``parentUuid``.

:func:`survey` reads all lines once for what has to be known before any of them can be placed: which belong to one
message, which were left behind when the user went back, where results stand. :func:`read` then gives the entries. The
path to the newest line is the conversation; side chains are branches; what Claude Code notes beside messages becomes
events of types that begin with ``CLAUDE_CODE.``.
"""

from turnlog.formats.claude_code.reading import read
from turnlog.formats.claude_code.survey import Survey, looks_like, survey

__all__ = ["Survey", "looks_like", "read", "survey"]
