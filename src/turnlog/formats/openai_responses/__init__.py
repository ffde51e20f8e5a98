"""OpenAI's Responses API: a list of items.

``parse`` reads items, and the ``instructions`` beside them; ``render`` writes both. The items of one reply (thoughts,
messages, calls) become one message of ours. What it does not say, the ids above all, stands in its ``native``, and the
items go back untouched, together, as long as the message still says the same: a thought without the very item that it
led to is refused by the provider.
"""

from turnlog.formats.openai_responses.reading import FORMAT, missing, parse, parse_reply
from turnlog.formats.openai_responses.writing import render

__all__ = ["FORMAT", "missing", "parse", "parse_reply", "render"]
