"""Google's Gemini API (``generateContent``), in JSON: the keys may be in camel or in snake case, bytes are base64.

``parse`` reads contents, and the ``systemInstruction`` beside them; ``render`` writes both. What our messages do not
say (thought signatures, code execution, unknown parts) stands in ``native``, on the first of the messages that a
content became, and goes back untouched as long as those still say the same.
"""

from turnlog.formats.gemini.reading import FORMAT, missing, parse, parse_reply
from turnlog.formats.gemini.writing import render

__all__ = ["FORMAT", "missing", "parse", "parse_reply", "render"]
