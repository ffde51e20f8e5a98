"""Any list of messages whose calls are answered makes a request that breaks no rule (P-1)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.formats import looking
from tests.formats.samples import PROVIDERS, accepted
from turnlog import (
    AssistantMessage,
    MediaPart,
    Message,
    Native,
    Part,
    ReasoningPart,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    ToolStatus,
    UserMessage,
)
from turnlog.formats import ProblemLevel, Request, losses, parse_request, problems, render_request

_TEXTS = st.sampled_from(["", " ", "\n", "Hello.", "你好", "\ud83d", "a\x00b"]) | st.text(max_size=5)
_MEDIA = st.sampled_from(
    [
        MediaPart(media_type="image/png", data=b"\x89PNG"),
        MediaPart(media_type="image/tiff", data=b"II"),
        MediaPart(media_type="image/*", url="https://e.org/a"),
        MediaPart(media_type="image/png", url="data:image/png;base64,<cut>"),
        MediaPart(media_type="application/pdf", data=b"%PDF", name="a b?.pdf"),
        MediaPart(media_type="application/pdf", url="https://e.org/a.pdf"),
        MediaPart(media_type="text/plain", data=b"\xff"),
        MediaPart(media_type="text/csv", data=b"a,b"),
        MediaPart(media_type="audio/wav", data=b"RIFF"),
        MediaPart(media_type="video/mp4", url="s3://bucket/key"),
        MediaPart(data=b"?"),
        MediaPart(file_id="file-1", media_type="image/*"),
        MediaPart(url="gs://bucket/key"),
    ]
)
_PARTS: st.SearchStrategy[Part] = st.one_of(
    st.builds(TextPart, _TEXTS, st.booleans()),
    _MEDIA,
    st.builds(ReasoningPart, text=st.none() | _TEXTS, signature=st.sampled_from([None, "s1"]), data=st.none()),
    st.just(ReasoningPart(data="d1")),
)
_CONTENTS = st.none() | _TEXTS | st.lists(_PARTS, max_size=3)
_NATIVES = st.none() | st.builds(
    Native,
    st.sampled_from([*PROVIDERS, "some-framework"]),
    st.sampled_from(
        [
            None,
            {"role": "user", "content": "else"},
            {"role": "assistant", "content": "else"},
            [],
            [{"type": "x"}],
            "x",
            5,
        ]
    ),
)
_IDS = st.sampled_from(["a", "b", "c", "a b", "x" * 50, "x" * 49 + "y", "fn:1", "", "é", "toolu_1"])
_ARGUMENTS = st.sampled_from(
    ["", "{}", '{"a": 1}', "[1]", "null", '{"a"', '{"a": 1e999}', "\ud800", '"' + "[" * 9, "NaN"]
)
_STATUSES = st.sampled_from([ToolStatus.OK, ToolStatus.ERROR, ToolStatus.NOT_RUN])


@st.composite
def _calling(draw: st.DrawFn) -> list[Message]:
    """A message with calls, and their results, in any order and any number of messages, with interim ones between."""
    ids = draw(st.lists(_IDS, min_size=1, max_size=3, unique=True))
    calls = [ToolCall(id_, draw(st.sampled_from(["look", "find"])), draw(_ARGUMENTS)) for id_ in ids]
    results = [ToolResult(id_, draw(_CONTENTS), draw(_STATUSES)) for id_ in draw(st.permutations(ids))]
    for id_ in draw(st.lists(st.sampled_from(ids), max_size=1)):
        results.insert(draw(st.integers(0, len(results))), ToolResult(id_, "wait", ToolStatus.INTERIM))
    messages: list[Message] = [AssistantMessage(draw(_CONTENTS), tool_calls=calls, native=draw(_NATIVES))]
    while results:
        count = draw(st.integers(1, len(results)))
        messages.append(ToolMessage(results[:count], native=draw(_NATIVES)))
        results = results[count:]
    return messages


def errors(request: dict[str, Any], provider: str) -> list[str]:
    return [f"{found.rule} {found.place}" for found in problems(request, provider) if found.level is ProblemLevel.ERROR]


#: What any model takes: some requests were accepted by one that is less strict than the others of its provider.
_RECORDED = [
    (recorded.request, provider)
    for recorded, provider in accepted()
    if len(str(recorded.request)) < 3_000
    and not errors({key: value for key, value in recorded.request.items() if "model" not in key}, provider)
][::5]


def steps(messages: tuple[Message, ...]) -> Iterator[list[Message]]:
    """Each message that stands by itself, and each with calls together with all of their results."""
    index = 0
    while index < len(messages):
        message = messages[index]
        end = index + 1
        while end < len(messages) and isinstance(messages[end], ToolMessage):
            end += 1
        if isinstance(message, AssistantMessage) and message.tool_calls:
            answered = [
                result.id
                for tool in messages[index + 1 : end]
                if isinstance(tool, ToolMessage)
                for result in tool.results
            ]
            if sorted(answered) == sorted(call.id for call in message.tool_calls):
                yield list(messages[index:end])
        elif not isinstance(message, ToolMessage):
            yield [message]
        index = end


_SENT = [step for data, provider in _RECORDED for step in steps(parse_request(data, provider).messages)]


def _alone(message: Message) -> list[Message]:
    return [message]


_SAID: st.SearchStrategy[Message] = st.one_of(
    st.builds(UserMessage, _CONTENTS, native=_NATIVES),
    st.builds(SystemMessage, _CONTENTS, native=_NATIVES),
    st.builds(AssistantMessage, _CONTENTS, native=_NATIVES),
)
_STEPS: st.SearchStrategy[list[Message]] = st.one_of(
    _SAID.map(_alone),
    _calling(),
    st.sampled_from(_SENT),
)
conversations = st.lists(_STEPS, min_size=1, max_size=6).map(
    lambda found: [message for step in found for message in step]
)


@pytest.mark.parametrize("provider", PROVIDERS)
@given(messages=conversations, source=st.sampled_from(PROVIDERS))
def test_it_breaks_no_rule_and_answers_each_call_once(provider: str, messages: list[Message], source: str) -> None:
    request = Request(messages=tuple(messages), provider=source, tools=())
    rendered = render_request(request, provider)
    assert errors(rendered, provider) == []
    json.dumps(rendered, allow_nan=False)
    asked, answered = looking.calls(rendered, provider), looking.results(rendered, provider)
    assert sorted(call.id for call in asked) == sorted(result.id for result in answered)
    assert len(asked) == sum(len(message.tool_calls) for message in messages if isinstance(message, AssistantMessage))
    losses(request, provider)


@pytest.mark.parametrize("provider", PROVIDERS)
@given(messages=conversations)
def test_what_was_rendered_is_read_again_with_the_same_calls(provider: str, messages: list[Message]) -> None:
    rendered = render_request(Request(messages=tuple(messages), provider=provider))
    again = parse_request(rendered, provider)
    assert render_request(again) == rendered
    read = [
        call.name for message in again.messages if isinstance(message, AssistantMessage) for call in message.tool_calls
    ]
    assert read == [call.name for call in looking.calls(rendered, provider)]
