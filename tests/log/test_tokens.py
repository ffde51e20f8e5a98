"""C-9: one renderer and one counter; exact with the extra, an estimate without it."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlog import (
    AssistantMessage,
    InvalidValueError,
    MediaPart,
    MissingExtraError,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
)
from turnlog.log import tokens
from turnlog.log.tokens import (
    MEDIA_TOKENS,
    MESSAGE_TOKENS,
    EstimatedTokens,
    VocabularyTokens,
    counter_named,
    default_counter,
    message_tokens,
)

ESTIMATE = EstimatedTokens()


@pytest.mark.parametrize(("text", "count"), [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("x" * 4_000, 1_000)])
def test_the_estimate_is_a_quarter_of_the_characters(text: str, count: int) -> None:
    assert ESTIMATE.count(text) == count


@pytest.mark.parametrize(
    ("vocabulary", "text", "count"),
    [
        ("o200k_base", "hello world", 2),
        ("cl100k_base", "hello world", 2),
        ("o200k_base", "", 0),
        ("o200k_base", "antidisestablishmentarianism", 6),
        ("cl100k_base", "antidisestablishmentarianism", 6),
        ("o200k_base", "<|endoftext|>", 7),
    ],
)
def test_vocabularies_count_exactly_and_offline(vocabulary: str, text: str, count: int) -> None:
    assert VocabularyTokens(vocabulary).count(text) == count


@given(st.text(st.characters()))
def test_any_text_is_counted_lone_surrogates_too(text: str) -> None:
    assert VocabularyTokens().count(text) <= len(text.encode("utf-8", "surrogatepass"))


def test_media_count_a_stated_figure_and_not_their_bytes() -> None:
    small = UserMessage((MediaPart(media_type="image/png", data=b"x"),))
    large = UserMessage((MediaPart(media_type="image/png", data=b"x" * 5_000_000),))
    assert message_tokens(small, ESTIMATE) == message_tokens(large, ESTIMATE) == MESSAGE_TOKENS + MEDIA_TOKENS
    seen = ToolMessage((ToolResult("c", (MediaPart(url="https://example.org/a.png"), TextPart("four"))),))
    assert message_tokens(seen, ESTIMATE) == MESSAGE_TOKENS + MEDIA_TOKENS + 1


def test_calls_results_and_reasoning_count() -> None:
    plain = message_tokens(AssistantMessage("text"), ESTIMATE)
    called = AssistantMessage("text", tool_calls=(ToolCall("c", "look", '{"up": 1}'),))
    assert message_tokens(called, ESTIMATE) == plain + ESTIMATE.count('look({"up": 1})')
    thought = AssistantMessage((ReasoningPart(text="hmm, let me see"), TextPart("text")))
    assert message_tokens(thought, ESTIMATE) == plain + ESTIMATE.count("hmm, let me see")
    answered = ToolMessage((ToolResult("c", "twelve chars"),))
    assert message_tokens(answered, ESTIMATE) == MESSAGE_TOKENS + 3


def test_the_environment_names_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TURNLOG_TOKEN_COUNTER")
    assert default_counter() == VocabularyTokens("o200k_base")
    monkeypatch.setattr(tokens, "has_vocabularies", lambda: False)
    assert default_counter() == EstimatedTokens()
    monkeypatch.setenv("TURNLOG_TOKEN_COUNTER", "cl100k_base")
    with pytest.raises(MissingExtraError, match=r"pip install 'turnlog\[tokens\]'"):
        default_counter()


def test_an_unknown_vocabulary_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="o200k_base, cl100k_base"):
        counter_named("gpt-5")


def test_importing_turnlog_loads_no_vocabulary() -> None:
    script = "import sys, turnlog; turnlog.open_store('memory:'); sys.exit('toktok' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


@given(st.lists(st.text() | st.sampled_from(("<|endoftext|>", "a<|fim_prefix|>b", " \n" * 40, "\0")), max_size=5))
@pytest.mark.parametrize("vocabulary", tokens.VOCABULARIES)
def test_the_count_is_that_of_the_whole_text(vocabulary: str, texts: list[str]) -> None:
    """It is taken from the call that cuts a text, which is much quicker for one text than the call that counts."""
    batch_count = pytest.importorskip("toktok", reason="NOT TESTED: the tokens extra is not installed").batch_count
    assert [VocabularyTokens(vocabulary).count(text) for text in texts] == batch_count(texts, vocabulary)
