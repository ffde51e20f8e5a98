"""Amazon Bedrock's Converse API, in JSON: bytes are base64.

``parse`` reads messages, and the ``system`` beside them; ``render`` writes both. What our messages do not say (cache
points, guarded content, citations, unknown blocks) stands in ``native``, on the first of the messages that a
provider's message became, and goes back untouched as long as those still say the same.
"""

from turnlog.formats.bedrock.reading import FORMAT, missing, parse, parse_reply
from turnlog.formats.bedrock.writing import render

__all__ = ["FORMAT", "missing", "parse", "parse_reply", "render"]
