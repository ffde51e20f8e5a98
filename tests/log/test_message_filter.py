"""M-1: which messages are stored, and the laws by which filters compose."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlog import (
    AssistantMessage,
    InvalidValueError,
    MediaPart,
    Message,
    MessageType,
    Native,
    ReasoningPart,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
    search_text,
)
from turnlog.log.message_filter import MessageFilter, as_message_filter
from turnlog.testing.strategies import messages


def long(message: Message) -> bool:
    return len(search_text(message)) > 5


def filters() -> st.SearchStrategy[MessageFilter]:
    return st.sampled_from(
        [
            MessageFilter.all(),
            MessageFilter.skip_empty_messages(),
            MessageFilter.by_message_type(MessageType.USER, MessageType.TOOL),
            MessageFilter.contains_text("a"),
            MessageFilter(long),
        ]
    )


@given(filters(), filters(), messages())
def test_and_or_not_are_those_of_logic(first: MessageFilter, second: MessageFilter, message: Message) -> None:
    mine, theirs = first(message), second(message)
    assert (first & second)(message) is (mine and theirs)
    assert (first | second)(message) is (mine or theirs)
    assert (~first)(message) is (not mine)


@given(filters(), filters(), messages())
def test_de_morgan(first: MessageFilter, second: MessageFilter, message: Message) -> None:
    assert (~(first & second))(message) is (~first | ~second)(message)
    assert (~(first | second))(message) is (~first & ~second)(message)
    assert (~~first)(message) is first(message)


@given(filters(), messages())
def test_any_callable_stands_on_either_side(known: MessageFilter, message: Message) -> None:
    assert (known & long)(message) is (long & known)(message) is (known(message) and long(message))
    assert (known | long)(message) is (long | known)(message) is (known(message) or long(message))


def test_the_second_is_not_asked_where_the_first_decides() -> None:
    def never(message: Message) -> bool:
        raise AssertionError(message)

    nothing = ~MessageFilter.all()
    assert not (nothing & never)(UserMessage("a"))
    assert (MessageFilter.all() | never)(UserMessage("a"))


def test_what_a_callable_gives_is_read_as_a_truth() -> None:
    given_: Any = lambda message: message.text  # noqa: E731 - a callable that gives no bool
    assert MessageFilter(given_)(UserMessage("a")) is True
    assert as_message_filter(given_)(UserMessage("")) is False


@given(messages())
def test_all_is_every_message(message: Message) -> None:
    assert MessageFilter.all()(message)


CALL = ToolCall("c", "look")
ANTHROPIC = Native("anthropic", {"content": [{"type": "redacted_thinking", "data": "x"}]})
TEXT_ALONE = Native("anthropic", {"content": [{"type": "text", "text": ""}]})


@pytest.mark.parametrize(
    ("message", "is_kept"),
    [
        (AssistantMessage(), False),
        (AssistantMessage(""), False),
        (AssistantMessage(" \n\t"), False),
        (AssistantMessage([]), False),
        (AssistantMessage([TextPart(""), TextPart(" ")]), False),
        (AssistantMessage([ReasoningPart(text="thinking")]), False),
        (AssistantMessage("", native=TEXT_ALONE), False),
        (AssistantMessage("", metadata={"a": 1}), False),
        (AssistantMessage("."), True),
        (AssistantMessage(tool_calls=(CALL,)), True),
        (AssistantMessage("", tool_calls=(CALL,)), True),
        (AssistantMessage([MediaPart(file_id="f")]), True),
        (AssistantMessage([ReasoningPart(signature="s")]), True),
        (AssistantMessage([ReasoningPart(data="withheld")]), True),
        (AssistantMessage("", native=ANTHROPIC), True),
        (UserMessage(""), True),
        (SystemMessage(""), True),
        (ToolMessage((ToolResult("c", ""),)), True),
    ],
)
def test_the_default_skips_assistant_messages_that_say_nothing(message: Message, is_kept: bool) -> None:  # noqa: FBT001 - parametrized
    """Neither text, nor calls, nor media, nor anything that a provider must get back."""
    assert MessageFilter.skip_empty_messages()(message) is is_kept


@given(messages(), st.sets(st.sampled_from(MessageType), min_size=1))
def test_by_message_type_keeps_these_types(message: Message, types: set[MessageType]) -> None:
    assert MessageFilter.by_message_type(*types)(message) is (message.type in types)


@given(messages(), st.sampled_from(["a", "KEY", "look", "ß"]))
def test_contains_text_looks_into_the_search_text_whatever_the_case(message: Message, keyword: str) -> None:
    """F-6: text, calls, results."""
    expected = keyword.casefold() in search_text(message).casefold()
    assert MessageFilter.contains_text(keyword)(message) is expected
    assert MessageFilter.contains_text(keyword.swapcase() if keyword != "ß" else "SS")(message) is expected


@pytest.mark.parametrize("blank", ["", " ", "\n", None, 7])
def test_contains_text_needs_a_keyword(blank: Any) -> None:
    with pytest.raises(InvalidValueError, match="not blank"):
        MessageFilter.contains_text(blank)


@pytest.mark.parametrize("wrong", [(), ("user",), (MessageType.USER, "tool"), (None,)])
def test_by_message_type_needs_types(wrong: tuple[Any, ...]) -> None:
    with pytest.raises(InvalidValueError, match="one MessageType or more"):
        MessageFilter.by_message_type(*wrong)


@pytest.mark.parametrize("wrong", [1, "a", None, [long]])
def test_what_is_no_callable_is_refused_at_once(wrong: Any) -> None:
    """Not when the first message is stored."""
    for compose in (
        lambda: MessageFilter(wrong),
        lambda: MessageFilter.all() & wrong,
        lambda: MessageFilter.all() | wrong,
        lambda: wrong & MessageFilter.all(),
        lambda: wrong | MessageFilter.all(),
    ):
        with pytest.raises(InvalidValueError, match="made of a callable"):
            compose()


def test_a_repr_says_what_it_is_made_of() -> None:
    made = ~MessageFilter.contains_text("secret") & MessageFilter.skip_empty_messages() | long
    assert repr(made) == "<MessageFilter ((~contains_text('secret') & skip_empty_messages) | long)>"
