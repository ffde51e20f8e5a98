"""Anthropic's Messages API.

``parse`` reads messages, and the ``system`` beside them; ``render`` writes both. What our messages do not say (cache
markers, server tools, citations, unknown blocks) stands in ``native``, on the first of the messages that a provider's
message became, and goes back untouched as long as those still say the same.
"""

from turnlog.formats.anthropic.reading import FORMAT, missing, parse, parse_reply
from turnlog.formats.anthropic.writing import render

__all__ = ["FORMAT", "missing", "parse", "parse_reply", "render"]
