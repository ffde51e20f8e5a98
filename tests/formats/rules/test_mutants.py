"""Recorded requests, changed so that the verdict is known: what breaks them is named, what does not is not (P-2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from tests.formats.recorded import Recorded, recorded
from tests.formats.rules import block_mutants, openai_mutants
from tests.formats.rules.block_mutants import ANTHROPIC, BEDROCK, GEMINI, Request
from tests.formats.rules.mutant import Mutant
from tests.formats.rules.providers import provider_of, request_of
from turnlog.formats import ProblemLevel, problems

Mutants = Callable[[dict[str, Any]], Iterator[Mutant]]

PRESERVING: dict[str, Mutants] = {
    "openai-chat": openai_mutants.preserving_chat,
    "openai-responses": openai_mutants.preserving_responses,
    "anthropic": lambda request: block_mutants.preserving(ANTHROPIC, request),
    "gemini": lambda request: block_mutants.preserving(GEMINI, request),
    "bedrock": lambda request: block_mutants.preserving(BEDROCK, request),
}
#: What some models refuse of what these mutants do: neighbours of one role, and text beside results.
BY_MODEL = {"bedrock.roles-alternate", "bedrock.results-mixed"}


def breaking_anthropic(request: dict[str, Any]) -> Iterator[Mutant]:
    """Beside what can be done to any request of blocks: what stands where Anthropic allows only calls, or results."""
    yield from block_mutants.breaking(ANTHROPIC, request)
    read = Request(ANTHROPIC, request)
    text = ANTHROPIC.text("Let me see.")
    for site in read.calls():
        late = read.edited(site.message, lambda blocks: [*blocks, text])
        yield Mutant("text behind a call", late, {"anthropic.after-tool-use"})
    for site in read.results():
        early = read.edited(site.message, lambda blocks: [text, *blocks])
        yield Mutant("text before a result", early, {"anthropic.tool-result-not-first"})
    for number, blocks in enumerate(read.blocks):
        thoughts = [block for block in blocks if block["type"] == "thinking"]
        if thoughts:
            moved = read.edited(number, thoughts_last)
            yield Mutant("move a thought to the end", moved, {"anthropic.thinking-last"})


def thoughts_last(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(blocks, key=lambda block: block["type"] == "thinking")


def breaking_gemini(request: dict[str, Any]) -> Iterator[Mutant]:
    """Beside what can be done to any request of blocks: signatures that are lost."""
    yield from block_mutants.breaking(GEMINI, request)
    read = Request(GEMINI, request)
    asking = {site.message for site in read.calls()}
    is_open = bool(read.blocks) and all(block_id is not None for block_id in map(GEMINI.result_id, read.blocks[-1]))
    if "gemini-3" not in request["model"] or not asking or not is_open:
        return
    # The last model turn may be several contents: the first call of all of them is the one that is signed.
    opening = max(message for message in asking if message - 1 not in asking)
    first = next(site for site in read.calls() if site.message == opening)
    unsigned = {key: value for key, value in read.at(first).items() if "ignature" not in key}
    changed = read.edited(opening, lambda blocks: [*blocks[: first.block], unsigned, *blocks[first.block + 1 :]])
    yield Mutant("lose a signature", changed, {"gemini.thought-signature"}, read.place(first))


BREAKING: dict[str, Mutants] = {
    "openai-chat": openai_mutants.breaking_chat,
    "openai-responses": openai_mutants.breaking_responses,
    "anthropic": breaking_anthropic,
    "gemini": breaking_gemini,
    "bedrock": lambda request: block_mutants.breaking(BEDROCK, request),
}


def accepted() -> list[Recorded]:
    """What providers accepted."""
    return [request for request in recorded() if request.is_accepted]


def breaking_faults(requests: Iterable[Recorded]) -> tuple[Counter[str], list[str]]:
    """How many mutants of each kind there were, and those of which the right rule was not named."""
    seen = Counter[str]()
    missed: list[str] = []
    for request in requests:
        provider = provider_of(request)
        for mutant in BREAKING[provider](request_of(request)):
            seen[f"{provider}: {mutant.how}"] += 1
            found = problems(mutant.request, provider)
            named = [problem for problem in found if problem.rule in mutant.rules]
            is_placed = mutant.place is None or any(problem.place == mutant.place for problem in named)
            if not named or not is_placed:
                missed.append(f"{request.name}: {mutant.how}: {found} is none of {mutant.rules} at {mutant.place}")
    return seen, missed


def preserving_faults(requests: Iterable[Recorded]) -> tuple[Counter[str], list[str]]:
    """How many mutants of each kind there were, and those that were found to break what the original does not."""
    seen = Counter[str]()
    wronged: list[str] = []
    for request in requests:
        provider = provider_of(request)
        before = {problem.rule for problem in problems(request_of(request), provider)}
        for mutant in PRESERVING[provider](request_of(request)):
            seen[f"{provider}: {mutant.how}"] += 1
            new = [problem for problem in problems(mutant.request, provider) if problem.rule not in before]
            if any(problem.level is ProblemLevel.ERROR or problem.rule not in BY_MODEL for problem in new):
                wronged.append(f"{request.name}: {mutant.how}: {new}")
    return seen, wronged


def test_what_breaks_a_request_is_named() -> None:
    seen, missed = breaking_faults(accepted())
    assert not missed, "\n".join(missed[:5])
    assert sum(seen.values()) > 7_000


def test_what_leaves_a_request_right_is_not_refused() -> None:
    seen, wronged = preserving_faults(accepted())
    assert not wronged, "\n".join(wronged[:5])
    assert sum(seen.values()) > 4_000


@pytest.mark.parametrize("provider", BREAKING)
def test_every_kind_of_damage_is_done_to_every_provider(provider: str) -> None:
    seen, _ = breaking_faults(request for request in accepted() if provider_of(request) == provider)
    result = "an output" if provider == "openai-responses" else "a result"
    kinds = [f"drop {result}", f"double {result}", "drop a call", "double a call", "cut behind the call"]
    assert [kind for kind in kinds if not seen[f"{provider}: {kind}"]] == []
