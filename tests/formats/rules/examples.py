"""One request for each rule that breaks it and no other, and the place."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

Fields = dict[str, Any]


class Example(NamedTuple):
    """A request that breaks one rule, in one place."""

    rule: str
    request: Fields
    place: str


ASK: Final = {"role": "user", "content": "Weather?"}


def chat(*messages: Fields, **fields: Any) -> Fields:
    return {"messages": list(messages), **fields}


def calls(*ids: str) -> Fields:
    return {"role": "assistant", "content": None, "tool_calls": [function(id_) for id_ in ids]}


def function(id_: str) -> Fields:
    return {"id": id_, "type": "function", "function": {"name": "look", "arguments": "{}"}}


def tool(id_: str, content: Any = "5") -> Fields:
    return {"role": "tool", "tool_call_id": id_, "content": content}


SOUND: Final = {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}

CHAT: Final = (
    Example("openai-chat.messages-empty", chat(), "messages"),
    Example("openai-chat.role", chat(ASK, {"role": "model", "content": "x"}), "messages[1].role"),
    Example(
        "openai-chat.role-of-model",
        chat({"role": "system", "content": "x"}, ASK, model="o1-mini-2024-09-12"),
        "messages[0].role",
    ),
    Example("openai-chat.tool-call-unanswered", chat(ASK, calls("a", "b"), tool("a")), "messages[1].tool_calls[1]"),
    Example("openai-chat.tool-result-unexpected", chat(ASK, tool("a")), "messages[1]"),
    Example("openai-chat.tool-result-unknown", chat(ASK, calls("a"), tool("b"), tool("a")), "messages[2].tool_call_id"),
    Example(
        "openai-chat.tool-result-duplicate", chat(ASK, calls("a"), tool("a"), tool("a")), "messages[3].tool_call_id"
    ),
    Example("openai-chat.tool-call-duplicate", chat(ASK, calls("a", "a"), tool("a")), "messages[1].tool_calls[1].id"),
    Example(
        "openai-chat.tool-calls-empty",
        chat(ASK, {"role": "assistant", "content": "x", "tool_calls": []}),
        "messages[1].tool_calls",
    ),
    Example("openai-chat.content-too-long", chat({"role": "user", "content": "x" * 1_048_577}), "messages[0].content"),
    Example("openai-chat.content-missing", chat(ASK, {"role": "assistant", "content": None}), "messages[1].content"),
    Example(
        "openai-chat.part-type-missing",
        chat({"role": "user", "content": [{"text": "x"}]}),
        "messages[0].content[0].type",
    ),
    Example("openai-chat.tool-part", chat(ASK, calls("a"), tool("a", [SOUND])), "messages[2].content[0]"),
    Example(
        "openai-chat.audio",
        chat({"role": "user", "content": [{"type": "text", "text": "x"}, SOUND]}, model="gpt-4o"),
        "messages[0].content[1]",
    ),
)


def call_item(id_: str, **fields: Any) -> Fields:
    return {"type": "function_call", "call_id": id_, "name": "look", "arguments": "{}", **fields}


def output_item(id_: str, **fields: Any) -> Fields:
    return {"type": "function_call_output", "call_id": id_, "output": "5", **fields}


THOUGHT: Final = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}


def items(*given: Fields, **fields: Any) -> Fields:
    return {"input": [ASK, *given], **fields}


RESPONSES: Final = (
    Example("openai-responses.input-missing", {"model": "gpt-5"}, "input"),
    Example("openai-responses.call-unanswered", items(call_item("a")), "input[1]"),
    Example("openai-responses.output-unexpected", items(output_item("a")), "input[1]"),
    Example("openai-responses.output-before-call", items(output_item("a"), call_item("a")), "input[1]"),
    Example(
        "openai-responses.output-duplicate",
        items(call_item("a"), output_item("a"), output_item("a")),
        "input[3].call_id",
    ),
    Example(
        "openai-responses.call-duplicate",
        items(call_item("a"), call_item("a"), output_item("a")),
        "input[2].call_id",
    ),
    Example(
        "openai-responses.item-duplicate",
        items(call_item("a", id="fc_1"), output_item("a"), call_item("b", id="fc_1"), output_item("b")),
        "input[3].id",
    ),
    Example("openai-responses.id-prefix", items(call_item("a", id="call_1"), output_item("a")), "input[1].id"),
    Example(
        "openai-responses.id-too-long", items(call_item("a", id="fc_" + "x" * 62), output_item("a")), "input[1].id"
    ),
    Example("openai-responses.id-characters", items(call_item("a", id="fc_1|a"), output_item("a")), "input[1].id"),
    Example("openai-responses.reasoning-unfollowed", items(THOUGHT, ASK), "input[1]"),
    Example(
        "openai-responses.message-between-calls",
        items(call_item("a"), {"role": "assistant", "content": "x"}, output_item("a"), model="deepseek-v4-flash"),
        "input[2]",
    ),
    Example(
        "openai-responses.part-of-role",
        items({"role": "assistant", "content": [{"type": "input_text", "text": "x"}]}),
        "input[1].content[0]",
    ),
    Example(
        "openai-responses.item-not-stored",
        items({"type": "item_reference", "id": "msg_1"}, store=False),
        "input[1]",
    ),
)


def text(words: str = "x") -> Fields:
    return {"type": "text", "text": words}


def use(id_: str = "a") -> Fields:
    return {"type": "tool_use", "id": id_, "name": "look", "input": {}}


def result(id_: str = "a") -> Fields:
    return {"type": "tool_result", "tool_use_id": id_, "content": "5"}


def user(*blocks: Fields) -> Fields:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: Fields) -> Fields:
    return {"role": "assistant", "content": list(blocks)}


def thought(signature: str | None = "s") -> Fields:
    return {"type": "thinking", "thinking": "hm", "signature": signature}


ENABLED: Final = {"type": "enabled", "budget_tokens": 1024}

ANTHROPIC: Final = (
    Example("anthropic.messages-empty", chat(), "messages"),
    Example("anthropic.messages-too-many", chat(*([ASK] * 100_001)), "messages"),
    Example("anthropic.role", chat(ASK, {"role": "tool", "content": "x"}), "messages[1].role"),
    Example("anthropic.system-role", chat(ASK, {"role": "system", "content": "x"}), "messages[1].role"),
    Example(
        "anthropic.tool-use-unanswered",
        chat(ASK, assistant(use("a"), use("b")), user(result("a"), text())),
        "messages[1].content[1]",
    ),
    Example(
        "anthropic.tool-result-unexpected",
        chat(ASK, assistant(use()), user(result(), result("z"))),
        "messages[2].content[1]",
    ),
    Example("anthropic.tool-result-role", chat(ASK, assistant(result("z"), text()), ASK), "messages[1].content[0]"),
    Example("anthropic.tool-use-role", chat(user(text(), use())), "messages[0].content[1]"),
    Example(
        "anthropic.tool-result-duplicate",
        chat(ASK, assistant(use()), user(result(), result())),
        "messages[2].content[1]",
    ),
    Example(
        "anthropic.tool-use-duplicate",
        chat(ASK, assistant(use()), assistant(use()), user(result())),
        "messages[2].content[0]",
    ),
    Example(
        "anthropic.tool-result-not-first",
        chat(ASK, assistant(use()), user(text()), user(result())),
        "messages[3].content[0]",
    ),
    Example("anthropic.after-tool-use", chat(ASK, assistant(use(), text()), user(result())), "messages[1].content[1]"),
    Example(
        "anthropic.server-result-unexpected",
        chat(ASK, assistant({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1"}, text()), ASK),
        "messages[1].content[0]",
    ),
    Example(
        "anthropic.server-use-unanswered",
        chat(ASK, assistant(text(), {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search"}), ASK),
        "messages[1].content[1]",
    ),
    Example("anthropic.message-empty", chat(ASK, {"role": "assistant", "content": ""}, ASK), "messages[1].content"),
    Example("anthropic.text-empty", chat(user(text(), text(""))), "messages[0].content[1]"),
    Example("anthropic.text-blank", chat(user(text(), text(" \n"))), "messages[0].content[1]"),
    Example("anthropic.prefill", chat(ASK, assistant(text()), model="claude-opus-4-6"), "messages[1]"),
    Example("anthropic.thinking-last", chat(ASK, assistant(text(), thought()), ASK), "messages[1].content[1]"),
    Example(
        "anthropic.thinking-missing",
        chat(ASK, assistant(text(), use()), user(result()), thinking=ENABLED),
        "messages[1].content[0]",
    ),
    Example("anthropic.thinking-unsigned", chat(ASK, assistant(thought(None), text()), ASK), "messages[1].content[0]"),
    Example("anthropic.first-not-user", chat(assistant(text()), ASK), "messages[0]"),
)


def called(name: str = "look", **fields: Any) -> Fields:
    return {"functionCall": {"name": name, "args": {}}, **fields}


def responded(name: str = "look") -> Fields:
    return {"functionResponse": {"name": name, "response": {"x": 5}}}


def contents(*given: tuple[str, list[Fields]], **fields: Any) -> Fields:
    return {"contents": [{"role": role, "parts": parts} for role, parts in given], "model": "gemini-2.5-pro", **fields}


QUESTION: Final = ("user", [{"text": "Weather?"}])

GEMINI: Final = (
    Example("gemini.contents-empty", contents(), "contents"),
    Example("gemini.parts-empty", contents(QUESTION, ("model", []), QUESTION), "contents[1]"),
    Example("gemini.role", contents(QUESTION, ("assistant", [{"text": "x"}]), QUESTION), "contents[1].role"),
    Example("gemini.response-turn", contents(QUESTION, ("user", [responded()])), "contents[1].parts[0]"),
    Example(
        "gemini.response-count",
        contents(QUESTION, ("model", [called(), called()]), ("user", [responded()])),
        "contents[1].parts[0]",
    ),
    Example("gemini.part-of-role", contents(("user", [called()])), "contents[0].parts[0]"),
    Example(
        "gemini.response-unknown",
        contents(QUESTION, ("model", [called()]), ("user", [responded("other")])),
        "contents[2].parts[0]",
    ),
    Example(
        "gemini.thought-signature",
        contents(QUESTION, ("model", [called()]), ("user", [responded()]), model="gemini-3-flash-preview"),
        "contents[1].parts[0]",
    ),
    Example("gemini.first-not-user", contents(("model", [{"text": "x"}]), QUESTION), "contents[0]"),
    Example("gemini.last-not-user", contents(QUESTION, ("model", [{"text": "x"}])), "contents[1]"),
)


def bedrock_use(id_: str = "a") -> Fields:
    return {"toolUse": {"toolUseId": id_, "name": "look", "input": {}}}


def bedrock_result(id_: str = "a", **fields: Any) -> Fields:
    return {"toolResult": {"toolUseId": id_, "content": [{"text": "5"}], **fields}}


def converse(*messages: Fields, **fields: Any) -> Fields:
    return {"messages": list(messages), "toolConfig": {"tools": []}, **fields}


SAID: Final = user({"text": "Weather?"})

BEDROCK: Final = (
    Example("bedrock.role", converse(SAID, {"role": "system", "content": [{"text": "x"}]}, SAID), "messages[1].role"),
    Example("bedrock.first-not-user", converse(), "messages"),
    Example("bedrock.roles-alternate", converse(SAID, SAID), "messages[1]"),
    Example("bedrock.tool-use-unanswered", converse(SAID, assistant(bedrock_use())), "messages[1].content[0]"),
    Example(
        "bedrock.tool-result-unexpected",
        converse(SAID, assistant(bedrock_use()), user(bedrock_result(), bedrock_result("b"))),
        "messages[2].content[1]",
    ),
    Example(
        "bedrock.tool-result-duplicate",
        converse(SAID, assistant(bedrock_use()), user(bedrock_result(), bedrock_result())),
        "messages[2].content[1]",
    ),
    Example(
        "bedrock.tool-use-duplicate",
        converse(SAID, assistant(bedrock_use(), bedrock_use()), user(bedrock_result())),
        "messages[1].content[1]",
    ),
    Example(
        "bedrock.tool-config-missing",
        chat(SAID, assistant(bedrock_use()), user(bedrock_result())),
        "messages[1].content[0]",
    ),
    Example(
        "bedrock.results-mixed",
        converse(SAID, assistant(bedrock_use()), user(bedrock_result(), {"text": "x"}), modelId="us.meta.llama4"),
        "messages[2].content[1]",
    ),
    Example("bedrock.message-empty", converse(SAID, assistant(), SAID), "messages[1].content"),
    Example("bedrock.text-blank", converse(user({"text": " "})), "messages[0].content[0]"),
    Example(
        "bedrock.error-empty",
        converse(SAID, assistant(bedrock_use()), user(bedrock_result(content=[], status="error"))),
        "messages[2].content[0]",
    ),
    Example(
        "bedrock.document-alone",
        converse(user({"document": {"name": "a", "format": "txt"}})),
        "messages[0].content[0]",
    ),
)

#: Rules that cannot be broken alone: the other rules that are broken with them stand beside.
TOGETHER: Final = (
    (
        Example(
            "openai-chat.tool-call-id-too-long", chat(ASK, calls("x" * 41), tool("x" * 41)), "messages[2].tool_call_id"
        ),
        {"openai-chat.tool-call-id-too-long"},
    ),
    (
        Example(
            "anthropic.tool-use-id", chat(ASK, assistant(use("a.b")), user(result("a.b"))), "messages[1].content[0].id"
        ),
        {"anthropic.tool-use-id"},
    ),
    (
        Example(
            "bedrock.tool-use-id",
            converse(SAID, assistant(bedrock_use("a b")), user(bedrock_result("a b"))),
            "messages[1].content[0].toolUse.toolUseId",
        ),
        {"bedrock.tool-use-id"},
    ),
    (
        Example("anthropic.thinking-disabled", chat(ASK, assistant(thought(), text())), "messages[1].content[0]"),
        {"anthropic.thinking-disabled", "anthropic.prefill"},
    ),
    (
        Example("gemini.call-turn", contents(("model", [called()]), ("user", [responded()])), "contents[0].parts[0]"),
        {"gemini.call-turn", "gemini.first-not-user"},
    ),
)

ALONE: Final = CHAT + RESPONSES + ANTHROPIC + GEMINI + BEDROCK
