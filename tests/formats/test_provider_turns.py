"""How what was said becomes the turns of a provider: joined, in its order, with all that it takes (P-1)."""

from __future__ import annotations

from tests.formats.provider_examples import CALL, CALLED, FORMATS, HI, PDF, PNG, TEXT
from turnlog import (
    AssistantMessage,
    MediaPart,
    Message,
    Native,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    ToolStatus,
    UserMessage,
)
from turnlog.formats import anthropic, bedrock, gemini, openai_responses


def test_messages_that_stood_apart_stay_apart_and_others_are_joined() -> None:
    """Providers read neighbours of one role as one turn; ours were perhaps said one after another."""
    apart = [HI["anthropic"], HI["anthropic"]]
    assert anthropic.render(anthropic.parse(apart))["messages"] == apart
    joined = anthropic.render([UserMessage("Hi."), UserMessage("Hi.")])["messages"]
    assert joined == [{"role": "user", "content": [TEXT, TEXT]}]
    added = anthropic.render([*anthropic.parse(apart), UserMessage("So?")])["messages"]
    assert added == [HI["anthropic"], {"role": "user", "content": [TEXT, {"type": "text", "text": "So?"}]}]


def test_an_original_joins_what_was_said_before_it_here() -> None:
    """A provider that wants turns to alternate gets them so."""
    marked = {"role": "user", "content": [TEXT | {"cache_control": {"type": "ephemeral"}}]}
    (theirs,) = anthropic.parse([marked])
    assert anthropic.render([UserMessage("So?"), theirs])["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "So?"}, *marked["content"]]}
    ]
    (as_string,) = anthropic.parse([{"role": "user", "content": "Hi."}])
    assert anthropic.render([UserMessage("So?"), as_string, UserMessage("Well?")])["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": text} for text in ("So?", "Hi.", "Well?")]}
    ]


def test_a_thought_that_leads_to_nothing_is_not_sent() -> None:
    """Anthropic refuses an assistant turn that ends with one."""
    thought = AssistantMessage([ReasoningPart(text="hm", signature="s1")], native=Native("anthropic", None))
    assert anthropic.render([UserMessage("Hi."), thought])["messages"] == [HI["anthropic"]]


def test_an_item_that_has_an_id_is_not_sent_twice() -> None:
    """OpenAI refuses duplicates; the second time it is a message like any other."""
    item = {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "Yes.", "annotations": []}],
    }
    _, reply = openai_responses.parse([HI["openai-responses"], item])
    items = openai_responses.render([UserMessage("Hi."), reply, UserMessage("Again?"), reply])["input"]
    assert items[1] == item
    assert items[3] == {"role": "assistant", "content": "Yes."}


def test_a_custom_call_is_answered_as_the_provider_asks_and_a_call_that_is_written_anew_as_what_it_is() -> None:
    """An output of the other kind is no answer: the call counts as open, and the request is refused."""
    call = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c1", "name": "sh", "input": "ls -l"}
    reply = openai_responses.parse_reply({"output": [call]}).message
    ours = ToolMessage((ToolResult("c1", "a b"),))
    (theirs,) = openai_responses.parse([{"type": "custom_tool_call_output", "call_id": "c1", "output": "a b"}])
    for result in (ours, theirs):
        items = openai_responses.render([UserMessage("List."), reply, result])["input"]
        assert items[1:] == [call, {"type": "custom_tool_call_output", "call_id": "c1", "output": "a b"}]
        items = openai_responses.render([UserMessage("List."), reply.replace(native=None), result])["input"]
        assert items[1:] == [
            {"type": "function_call", "call_id": "c1", "name": "sh", "arguments": "ls -l"},
            {"type": "function_call_output", "call_id": "c1", "output": "a b"},
        ]


def test_a_document_for_bedrock_has_a_text_beside_it() -> None:
    (turn,) = bedrock.render([UserMessage([PDF])])["messages"]
    assert [next(iter(block)) for block in turn["content"]] == ["document", "text"]
    (turn,) = bedrock.render([UserMessage([TextPart("Hi."), PDF])])["messages"]
    assert [next(iter(block)) for block in turn["content"]] == ["text", "document"]


def test_a_history_that_begins_with_the_assistant_gets_a_user_before_it_unless_it_came_so() -> None:
    for content in ([TEXT], "Hi."):
        reply = {"role": "assistant", "content": content}
        assert anthropic.render(anthropic.parse([reply]))["messages"] == [reply]
    assert [turn["role"] for turn in anthropic.render([AssistantMessage("Hi.")])["messages"]] == ["user", "assistant"]
    calls = [CALLED["gemini"], {"role": "user", "parts": [{"text": "?"}]}]
    assert gemini.render(gemini.parse(calls))["contents"][0]["role"] == "user"


def test_an_interim_result_answers_nothing_and_is_not_sent() -> None:
    """V-1: the last word on a call is its result."""
    messages: list[Message] = [
        UserMessage("Hi."),
        AssistantMessage(tool_calls=[CALL]),
        ToolMessage([ToolResult("c1", "wait", ToolStatus.INTERIM)]),
        ToolMessage([ToolResult("c1", "5")]),
    ]
    for provider, format_ in FORMATS.items():
        assert "wait" not in str(format_.render(messages)), provider
        assert "5" in str(format_.render(messages))


def test_a_failed_call_is_one_where_the_provider_has_a_place_for_that() -> None:
    messages: list[Message] = [
        UserMessage("Hi."),
        AssistantMessage(tool_calls=[CALL]),
        ToolMessage([ToolResult("c1", None, ToolStatus.NOT_RUN)]),
    ]
    assert anthropic.render(messages)["messages"][2]["content"][0]["is_error"] is True
    assert gemini.render(messages)["contents"][2]["parts"][0]["functionResponse"]["response"] == {"error": ""}
    # Bedrock refuses an error that says nothing.
    assert bedrock.render(messages)["messages"][2]["content"][0]["toolResult"]["content"] != []


def test_a_call_that_another_model_made_tells_gemini_so() -> None:
    """Its newer models refuse a call without a signature, and take Google's own word for it that there is none."""
    mine = gemini.render([UserMessage("Hi."), AssistantMessage(tool_calls=[CALL, ToolCall("c2", "look")])])
    first, second = mine["contents"][1]["parts"]
    assert first["thoughtSignature"] == "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="
    assert "thoughtSignature" not in second
    theirs = [HI["gemini"], CALLED["gemini"]]
    assert gemini.render(gemini.parse(theirs))["contents"] == theirs


def test_media_in_results_go_where_they_are_taken() -> None:
    messages: list[Message] = [
        UserMessage("Hi."),
        AssistantMessage(tool_calls=[CALL]),
        ToolMessage([ToolResult("c1", [TextPart("Here."), PNG])]),
    ]
    assert [block["type"] for block in anthropic.render(messages)["messages"][2]["content"][0]["content"]] == [
        "text",
        "image",
    ]
    parts = gemini.render(messages)["contents"][2]["parts"]
    assert [next(iter(part)) for part in parts] == ["functionResponse", "inlineData"]
    blocks = bedrock.render(messages)["messages"][2]["content"][0]["toolResult"]["content"]
    assert [next(iter(block)) for block in blocks] == ["text", "image"]
    output = openai_responses.render(messages)["input"][2]["output"]
    assert [part["type"] for part in output] == ["input_text", "input_image"]


def test_a_message_that_would_be_empty_says_that_something_was_left_out() -> None:
    """B155: as text, never as the image itself."""
    sound = UserMessage([MediaPart(media_type="audio/wav", data=b"RIFF")])
    assert anthropic.render([sound])["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "(audio/wav: left out)"}]}
    ]
    beside = UserMessage([TextPart("Hi."), *sound.parts])
    assert anthropic.render([beside])["messages"] == [{"role": "user", "content": [TEXT]}]


def test_names_of_documents_are_made_such_as_bedrock_takes() -> None:
    def names(*given: str | None) -> list[str]:
        parts = [MediaPart(media_type="application/pdf", data=b"%PDF", name=name) for name in given]
        (turn,) = bedrock.render([UserMessage([TextPart("Hi."), *parts])])["messages"]
        return [block["document"]["name"] for block in turn["content"][1:]]

    assert names("a.pdf", None, "ok (1)", "…", "x" * 300) == ["a pdf", "Document 1", "ok (1)", "Document 2", "x" * 200]
