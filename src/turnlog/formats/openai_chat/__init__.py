"""Messages of OpenAI's chat completions API, and of the many services that speak it.

``parse`` reads one message of any role and content form, ``parse_messages`` a list of them; ``render`` writes messages
back. Nothing is lost: where our message does not say all that the original said (an unknown key, a ``developer`` role,
a part of an unknown type), the original stands in ``native``, and goes back untouched as long as the message still says
the same.
"""

from turnlog.formats.openai_chat.reading import FORMAT, missing, parse, parse_messages, parse_reply
from turnlog.formats.openai_chat.writing import render, render_message

__all__ = ["FORMAT", "missing", "parse", "parse_messages", "parse_reply", "render", "render_message"]
