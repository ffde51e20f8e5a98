"""``SummarizingCompactionStrategy``: the turns that leave are told again in a rolling summary (C-3, C-6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct

from turnlog.compaction import prompts
from turnlog.compaction.plan import CompactionPlan, Outcome, Summarize, Summary, SummaryNeeded
from turnlog.compaction.request import CompactionRequest, EventSequence, ViewParts
from turnlog.compaction.window import Cut, WindowCompactionStrategy
from turnlog.errors import InvalidValueError
from turnlog.log.events import SessionEvent
from turnlog.log.messages import AssistantMessage, Message, SystemMessage, UserMessage
from turnlog.log.tokens import TokenCounter
from turnlog.log.windows import check_count

#: The conversation shown in one call, where the strategy is not told otherwise.
DEFAULT_INPUT_TOKENS: Final = 16_000
_BUDGET_SHARE: Final = 10


class SummaryRequest(Struct, frozen=True, kw_only=True):
    """What a summariser gets: the summary so far, the messages to tell (``text`` renders them), and what follows them.

    ``messages()`` is the default prompt, ready for any chat model; a summariser may build its own from the parts.
    """

    session_id: str
    prior_summary: str | None
    events: tuple[SessionEvent, ...]
    text: str
    overlap: tuple[SessionEvent, ...]
    max_summary_tokens: int
    counter: TokenCounter
    instructions: str = prompts.INSTRUCTIONS

    def messages(self) -> list[Message]:
        """A system message with the instructions and a user message with the data, fenced."""
        mark = prompts.new_mark()
        pieces = [prompts.fenced(prompts.CONVERSATION, self.text, mark)]
        if self.prior_summary is not None:
            pieces.insert(0, prompts.fenced(prompts.PRIOR, self.prior_summary, mark))
        if self.overlap:
            following = prompts.render_messages([event.content for event in self.overlap])
            pieces.append(prompts.fenced(prompts.OVERLAP, following, mark))
        instructions = self.instructions.replace("{most_tokens}", str(self.max_summary_tokens))
        return [SystemMessage(instructions), UserMessage("\n\n".join(pieces))]


class SummarizingCompactionStrategy(Struct, frozen=True):
    """Covers what ``keep`` would cover, and the earlier summary too; ``summarize`` tells both again in one text.

    ``summarize`` is any callable on a :class:`SummaryRequest`, sync or async, that returns text or a
    :class:`Summary`. It is given the base branch's messages; what branches did leaves with its turn. ``overlap``
    messages of what is kept are shown for orientation. More than ``max_input_tokens`` are told in parts, each with
    the summary of those before. The text may have ``max_summary_tokens``, by default a tenth of the budget: of
    ``keep``'s tokens, else of the input's.
    """

    summarize: Summarize
    keep: WindowCompactionStrategy = WindowCompactionStrategy(last_turns=4)
    overlap: int = 2
    max_summary_tokens: int | None = None
    max_input_tokens: int = DEFAULT_INPUT_TOKENS
    instructions: str = prompts.INSTRUCTIONS

    def __post_init__(self) -> None:
        if not callable(self.summarize):
            raise InvalidValueError(f"summarize is a callable on a SummaryRequest, not {self.summarize!r}")
        if not isinstance(self.keep, WindowCompactionStrategy):
            raise InvalidValueError(f"keep is a WindowCompactionStrategy, not {self.keep!r}")
        check_count("overlap", self.overlap, least=0)
        check_count("max_input_tokens", self.max_input_tokens, least=1)
        if self.max_summary_tokens is not None:
            check_count("max_summary_tokens", self.max_summary_tokens, least=1)

    def __call__(self, request: CompactionRequest) -> Outcome:
        """Nothing to do, or the request for the first part of the summary."""
        parts = request.parts
        reserved = request.tokens_of((*parts.system, *parts.preamble)) + self._longest_summary()
        cut = self.keep.cut(request, pinned_tokens=reserved)
        if cut.reason:
            return CompactionPlan(strategy="summary", reason=cut.reason)
        told = [event for event in cut.covered if event.message is not None and event.branch == parts.base]
        portions = portions_of(told, request.counter, self.max_input_tokens)
        return self._ask(request, parts, cut, portions, _summary_text(parts.summary), Summary(""))

    def _ask(
        self,
        request: CompactionRequest,
        parts: ViewParts,
        cut: Cut,
        portions: Sequence[Portion],
        prior: str | None,
        spent: Summary,
    ) -> SummaryNeeded:
        """Ask for the first portion's summary; the next is asked for, or the plan made, when it is there."""

        def resume(summary: Summary) -> Outcome:
            total = Summary(summary.text, summary.model or spent.model, _added(spent.usage, summary.usage))
            if not summary.text.strip():
                return CompactionPlan(strategy="summary", reason="the summary is blank", summary=total)
            length = request.counter.count(summary.text)
            told = request.counter.count(f"{prior or ''}{portions[0].text}")
            if length > self._longest_summary():
                reason = f"the summary has {length} tokens, more than {self._longest_summary()}"
                return CompactionPlan(strategy="summary", reason=reason, summary=total)
            if length >= told:
                reason = f"the summary is not shorter than what it tells: {length} tokens for {told}"
                return CompactionPlan(strategy="summary", reason=reason, summary=total)
            if portions[1:]:
                return self._ask(request, parts, cut, portions[1:], summary.text, total)
            pinned = (*parts.system, *parts.preamble)
            return CompactionPlan(strategy="summary", pinned=pinned, preserved=cut.preserved, summary=total)

        following = portions[1].events if portions[1:] else cut.preserved
        overlap = [event for event in following if event.message is not None and event.branch == parts.base]
        asked = SummaryRequest(
            session_id=request.session_id,
            prior_summary=prior,
            events=portions[0].events,
            text=portions[0].text,
            overlap=tuple(overlap[: self.overlap]),
            max_summary_tokens=self._longest_summary(),
            counter=request.counter,
            instructions=self.instructions,
        )
        return SummaryNeeded(asked, self.summarize, resume)

    def _longest_summary(self) -> int:
        if self.max_summary_tokens is not None:
            return self.max_summary_tokens
        return max(1, (self.keep.max_tokens or self.max_input_tokens) // _BUDGET_SHARE)


class Portion(Struct, frozen=True):
    """What one call of a summariser is shown: events, rendered. A very long event is shown in slices."""

    events: tuple[SessionEvent, ...]
    text: str


def portions_of(events: Sequence[SessionEvent], counter: TokenCounter, most_tokens: int) -> list[Portion]:
    """The events in portions of at most so many tokens."""
    portions: list[Portion] = []
    room = 0
    for event, text in zip(events, prompts.render_each([event.content for event in events]), strict=True):
        for piece in _slices(text, counter, most_tokens):
            cost = counter.count(piece) + 1  # the blank line between two
            if cost > room:
                portions.append(Portion((event,), piece))
                room = most_tokens - cost
            else:
                last = portions[-1]
                known = last.events if last.events[-1] is event else (*last.events, event)
                portions[-1] = Portion(known, f"{last.text}\n\n{piece}")
                room -= cost
    return portions


def _slices(text: str, counter: TokenCounter, most_tokens: int) -> list[str]:
    """The text in equal slices, as few as keep each within so many tokens (or to single characters)."""
    count = 1
    while True:
        size = -(-len(text) // count)
        slices = [text[start : start + size] for start in range(0, len(text), max(size, 1))] or [text]
        longest = max(map(counter.count, slices))
        if longest < most_tokens or size <= 1:
            return slices
        count = max(count + 1, count * longest // most_tokens)


def _summary_text(summary: EventSequence) -> str | None:
    texts = [event.content.text for event in summary if isinstance(event.message, AssistantMessage)]
    return "\n".join(texts) or None


def _added(first: dict[str, Any] | None, second: dict[str, Any] | None) -> dict[str, Any] | None:
    """Two reports of usage as one: numbers are summed, anything else is the later one's."""
    if first is None or second is None:
        return second if first is None else first
    summed = {
        key: value + first[key] for key, value in second.items() if _is_number(value) and _is_number(first.get(key))
    }
    return first | second | summed


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
