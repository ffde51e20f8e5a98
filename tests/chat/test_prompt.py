"""H-3 as pure functions: the parts of a request, the overlap, and what a run has stored of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.chat.speaking import asks
from turnlog.chat.prompt import carried_of, is_same, not_carried, overlap, parts_of, stored_before, system_messages
from turnlog.log.messages import (
    AssistantMessage,
    MediaPart,
    Message,
    Native,
    ReasoningPart,
    SystemMessage,
    TextPart,
    ToolMessage,
    ToolResult,
    ToolStatus,
    UserMessage,
)
from turnlog.testing.strategies import messages as any_messages

_few = st.sampled_from(
    [
        UserMessage("a"),
        UserMessage("b"),
        AssistantMessage("1"),
        asks("c"),
        ToolMessage((ToolResult("c", "found"),)),
        SystemMessage("be kind"),
        SystemMessage(" "),
    ]
)
_spoken = _few.filter(lambda message: not isinstance(message, SystemMessage))
_lists = st.lists(_few, max_size=6)
_talks = st.lists(_spoken, max_size=6)


@given(_lists)
def test_the_parts_are_the_request(messages: list[Message]) -> None:
    """Each message is in one part, in its order; the last run is of one kind, and as long as it can be."""
    parts = parts_of(messages)
    others = [message for message in messages if not isinstance(message, SystemMessage)]
    assert list(parts.systems) == [message for message in messages if isinstance(message, SystemMessage)]
    assert [*parts.before, *parts.trailing] == others
    assert len({message.type for message in parts.trailing}) <= 1
    assert all(isinstance(message, (UserMessage, ToolMessage)) for message in parts.trailing)
    if parts.trailing and parts.before:
        assert parts.before[-1].type != parts.trailing[0].type
    if not parts.trailing:
        assert not others or isinstance(others[-1], AssistantMessage)
    assert parts.is_behind_tools == bool(others and isinstance(others[-1], ToolMessage))


@given(st.none() | _few.filter(lambda message: isinstance(message, SystemMessage)), _lists)
def test_system_messages_are_sent_once_and_not_blank(stored: SystemMessage | None, messages: list[Message]) -> None:
    requested = parts_of(messages).systems
    sent = system_messages(stored, requested)
    assert len(set(sent)) == len(sent)
    assert all(message.text.strip() for message in sent)
    assert set(sent) == {message for message in [stored, *requested] if message and message.text.strip()}
    if stored is not None and stored.text.strip():
        assert sent[0] == stored


def test_a_system_message_of_media_is_not_blank() -> None:
    picture = SystemMessage([MediaPart(file_id="f")])
    assert system_messages(None, [picture, SystemMessage("")]) == (picture,)


@given(_talks, _talks)
def test_the_overlap_is_the_longest_common_end(stored: list[Message], before: list[Message]) -> None:
    length = overlap(stored, before)
    assert stored[len(stored) - length :] == before[len(before) - length :]
    if length < min(len(stored), len(before)):
        assert stored[-length - 1] != before[-length - 1]
    assert overlap(before, stored) == length


@given(any_messages())
def test_a_message_says_the_same_as_itself_without_what_hosts_lose(message: Message) -> None:
    """Metadata, what a provider sent besides, reasoning, and how the text is cut into parts."""
    assert is_same(message, message.replace(metadata={"a": 1}, native=Native("x", {})))
    if isinstance(message, AssistantMessage):
        assert is_same(message, message.replace(content=(*message.parts, ReasoningPart(text="hm"))))
    if not isinstance(message, ToolMessage):
        cut = [piece for part in message.parts for piece in _halves(part)]
        assert is_same(message, message.replace(content=cut))


def _halves(part: Any) -> Sequence[Any]:
    if not isinstance(part, TextPart):
        return (part,)
    middle = len(part.text) // 2
    return (TextPart(part.text[:middle]), TextPart(part.text[middle:]))


@given(any_messages(), any_messages())
def test_equal_messages_say_the_same(first: Message, second: Message) -> None:
    assert is_same(first, second) is is_same(second, first)
    if first == second:
        assert is_same(first, second)
    if first.type != second.type:
        assert not is_same(first, second)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (UserMessage("a"), UserMessage("b")),
        (UserMessage("a"), SystemMessage("a")),
        (UserMessage([MediaPart(url="x")]), UserMessage([MediaPart(url="y")])),
        (UserMessage([TextPart("a"), MediaPart(url="x")]), UserMessage("a")),
        (asks("c"), asks("d")),
        (asks("c"), asks("c", arguments="{}")),
        (ToolMessage((ToolResult("c", "a"),)), ToolMessage((ToolResult("d", "a"),))),
        (ToolMessage((ToolResult("c", "a"),)), ToolMessage((ToolResult("c", "b"),))),
        (ToolMessage((ToolResult("c", [MediaPart(url="x")]),)), ToolMessage((ToolResult("c", [MediaPart(url="y")]),))),
    ],
)
def test_other_words_media_calls_or_results_are_another_message(first: Message, second: Message) -> None:
    assert not is_same(first, second)


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ('{"a": 1, "b": [2]}', '{"b":[2],"a":1}', True),
        ('{"a": 1}', '{"a": 1.0}', False),
        ('{"a": 1}', '{"a": true}', False),
        ('{"a": "é"}', '{"a": "\\u00e9"}', True),
        ('{"a"', '{"a" ', False),
        ("", "{}", False),
        ("[" * 100_000, "[" * 100_000 + " ", False),
        ('"\\ud800"', '"\\ud801"', False),
    ],
)
def test_how_a_calls_json_is_laid_out_takes_no_part(first: str, second: str, same: bool) -> None:  # noqa: FBT001 - parametrized
    """Hosts read the arguments and write them anew."""
    assert is_same(asks("c", arguments=first), asks("c", arguments=second)) is same
    assert is_same(asks("c", arguments=first), asks("c", arguments=first))


def test_the_status_of_a_result_takes_no_part() -> None:
    """Hosts do not hand it back."""
    failed = ToolMessage((ToolResult("c", "a", ToolStatus.ERROR, "look"),))
    assert is_same(failed, ToolMessage((ToolResult("c", "a"),)))


@given(_talks, _talks, st.integers(0, 6))
def test_a_request_that_carries_the_log_or_its_end_gets_the_rest(
    history: list[Message], run: list[Message], kept: int
) -> None:
    """What a client sends of the log, from any place on, is completed to the log, and never doubled."""
    log = [*history, *run]
    before = log[min(kept, len(log)) :]
    tail = history[max(0, len(history) - max(0, len(before) - len(run))) :]
    carried = carried_of(len(tail), len(run), overlap([*tail, *run], before), len(before))
    assert carried is not None
    assert [*history[: len(history) - carried], *not_carried(run, before), *before] == log


@given(_talks, _talks, _talks)
def test_what_is_carried_is_never_more_than_there_is(
    history: list[Message], run: list[Message], before: list[Message]
) -> None:
    common = overlap([*history, *run], before)
    carried = carried_of(len(history), len(run), common, len(before))
    if carried is None:
        assert len(run) < common < len(before)
    else:
        assert 0 <= carried <= len(history)
        assert carried == 0 or (carried == common - len(run) and common == len(before))


class TestStoredBefore:
    """Whether the end of a request is new to the run, or what it has stored last."""

    @given(_talks, _talks.filter(bool))
    def test_what_the_run_ends_with_is_known(self, stored: list[Message], wanted: list[Message]) -> None:
        assert stored_before([*stored, *wanted], (), wanted) == len(stored)

    @given(_talks, st.lists(st.sampled_from("12345"), min_size=1, max_size=4))
    def test_so_is_what_its_last_replies_were_given_to(self, stored: list[Message], replies: list[str]) -> None:
        """However often the model was asked."""
        wanted = [UserMessage("something new")]
        run = [*stored, *wanted, *map(AssistantMessage, replies)]
        assert stored_before(run, stored, wanted) == len(stored)

    @given(_talks)
    def test_what_was_never_stored_is_new(self, stored: list[Message]) -> None:
        assert stored_before(stored, (), [UserMessage("something new")]) is None

    def test_behind_a_reply_that_the_request_carries_it_is_new(self) -> None:
        stored: list[Message] = [UserMessage("go on"), AssistantMessage("1")]
        assert stored_before(stored, stored, [UserMessage("go on")]) is None
        assert stored_before(stored, (), [UserMessage("go on")]) == 0

    def test_results_that_a_reply_asks_for_are_new(self) -> None:
        """Models use ids again, and tools give the same again."""
        found = ToolMessage((ToolResult("c", "found"),))
        stored: list[Message] = [UserMessage("a"), asks("c"), found, asks("c")]
        assert stored_before(stored, (), [found]) is None
        assert stored_before([*stored[:3], AssistantMessage("done")], (), [found]) == 2

    def test_where_nothing_is_to_be_stored_the_replies_lie_behind(self) -> None:
        """A filter keeps the question out; asked again, the first answer is behind it, unless the request has it."""
        reply = AssistantMessage("1")
        assert stored_before([reply], (), ()) == 0
        assert stored_before([reply], [UserMessage("a"), reply], ()) == 1
        assert stored_before([], (), ()) == 0


@given(_talks, _talks)
def test_a_turn_told_in_other_words_is_not_told_twice(run: list[Message], before: list[Message]) -> None:
    """What the request leaves out is added only where the rest of it is the end of the run."""
    added = not_carried(run, before)
    if added:
        assert [*added, *before] == run
