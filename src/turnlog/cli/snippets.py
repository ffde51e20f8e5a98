"""Where a search found its terms, in a little of the text around."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from turnlog.cli.escaping import one_line

#: Characters before the first hit.
_BEFORE = 30


def snippet(text: str, terms: Sequence[str], width: int, ellipsis: str = "…") -> Text:
    """One line of at most ``width`` cells around the first hit, every hit in it marked."""
    line = one_line(text)
    spans = list(_spans(line, terms))
    first = min((start for start, _ in spans), default=0)
    start = max(0, min(first - _BEFORE, len(line) - width + 1))
    shown = Text(line)
    for low, high in spans:
        shown.stylize("bold reverse", low, high)
    shown = shown[start:]
    if start:
        shown = Text.assemble((ellipsis, "dim"), shown)
    shown.truncate(width, overflow="ellipsis")
    return shown


def _spans(text: str, terms: Sequence[str]) -> Iterator[tuple[int, int]]:
    """The places of the terms, in any case. Folding makes one character several: places are those of the original."""
    folded: list[str] = []
    origin: list[int] = []
    for index, character in enumerate(text):
        piece = character.casefold()
        folded.append(piece)
        origin += [index] * len(piece)
    whole = "".join(folded)
    for term in terms:
        # The line's spaces are single; a term that spans lines is looked for in the same form.
        wanted = one_line(term).casefold()
        start = whole.find(wanted)
        while wanted and start >= 0:
            yield origin[start], origin[start + len(wanted) - 1] + 1
            start = whole.find(wanted, start + len(wanted))
