"""What counts as text that says something."""

from __future__ import annotations


def is_blank(text: str) -> bool:
    """Whether there is nothing to read in it."""
    return not text or text.isspace()
