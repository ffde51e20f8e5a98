"""The table of Anthropic's rules."""

from __future__ import annotations

from typing import Final

from turnlog.formats.rules import anthropic
from turnlog.formats.rules.anthropic import Anthropic
from turnlog.formats.rules.problem import ProblemLevel
from turnlog.formats.rules.rule import Rule

_UNANSWERED: Final = (
    "messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately after: {id}. Each `tool_use` "
    "block must have a corresponding `tool_result` block in the next message."
)

RULES: Final[tuple[Rule[Anthropic], ...]] = (
    Rule(
        id="anthropic.messages-empty",
        demand="There is at least one message.",
        message="there are no messages: send at least one of the user's",
        says="messages: at least one message is required",
        find=anthropic.empty,
    ),
    Rule(
        id="anthropic.messages-too-many",
        demand="There are at most 100,000 messages.",
        message="there are {count} messages, 100,000 are allowed: compact the conversation",
        find=anthropic.too_many,
    ),
    Rule(
        id="anthropic.role",
        demand="A role is user or assistant, with some models system.",
        message="no message has the role {role!a}: it is user or assistant",
        says='messages: Unexpected role "{role}". Allowed roles are "user" or "assistant".',
        find=anthropic.wrong_role,
    ),
    Rule(
        id="anthropic.system-role",
        level=ProblemLevel.BY_MODEL,
        demand="System messages stand under `system`; newer models take them among the messages too.",
        message="a system message among the others, which only newer models take: put the text under 'system'",
        says='messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter, not '
        '"system" as an input message role.',
        find=anthropic.system_role,
    ),
    Rule(
        id="anthropic.tool-use-unanswered",
        demand="Every `tool_use` of an assistant turn has its `tool_result` in the user turn right after.",
        message="call {id!a} has no result in the next user turn: put its tool_result there, or leave the call out",
        says=_UNANSWERED,
        find=anthropic.unanswered,
    ),
    Rule(
        id="anthropic.tool-result-unexpected",
        demand="Every `tool_result` has its `tool_use` in the assistant turn right before.",
        message="the turn before has no call {id!a}: leave this result out, or bring its call back",
        says="{dotted}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each `tool_result` block must "
        "have a corresponding `tool_use` block in the previous message.",
        find=anthropic.unexpected,
    ),
    Rule(
        id="anthropic.tool-result-role",
        demand="`tool_result` blocks stand in user messages.",
        message="a tool_result stands in a user message: move it into the one after its call",
        says="messages.{index}: `tool_result` blocks can only be in `user` messages",
        find=anthropic.misplaced_result,
    ),
    Rule(
        id="anthropic.tool-use-role",
        demand="`tool_use` blocks stand in assistant messages.",
        message="a tool_use stands in an assistant message: move it there",
        says="messages.{index}: `tool_use` blocks can only be in `assistant` messages",
        find=anthropic.misplaced_call,
    ),
    Rule(
        id="anthropic.tool-result-duplicate",
        demand="A call is answered once.",
        message="call {id!a} has a second result: keep the last one",
        says="{dotted}: each tool_use must have a single result. Found multiple `tool_result` blocks with id: {id}",
        find=anthropic.second_result,
    ),
    Rule(
        id="anthropic.tool-use-duplicate",
        demand="The calls of one assistant turn have different ids; later turns may use an id again.",
        message="the id {id!a} stands in two calls of one turn: give each call its own",
        says="{dotted}: `tool_use` ids must be unique",
        find=anthropic.second_call,
    ),
    Rule(
        id="anthropic.tool-result-not-first",
        demand="The `tool_result` blocks come first in their user turn; text follows them.",
        message="the result of call {id!a} stands behind something else: put the results first in their turn",
        says=_UNANSWERED,
        find=anthropic.late_result,
    ),
    Rule(
        id="anthropic.after-tool-use",
        demand="Nothing follows the `tool_use` blocks in an assistant turn but what the provider's own tools did.",
        message="a block of type {kind!a} stands behind call {id!a}: put it before the calls",
        says=_UNANSWERED,
        find=anthropic.after_calls,
    ),
    Rule(
        id="anthropic.server-result-unexpected",
        demand="What a tool of the provider's own found stands behind its call.",
        message="no call {id!a} stands before this block of type {kind!a}: send both as they came, or leave both out",
        says="{dotted}: unexpected `tool_use_id` found in `{kind}` blocks: {id}. Each `{kind}` block must have a "
        "corresponding `server_tool_use` block before it.",
        find=anthropic.server_result_without_call,
    ),
    Rule(
        id="anthropic.server-use-unanswered",
        demand="A call of a tool of the provider's own has its result, before the user says something else.",
        message="call {id!a} of {name!a} has no result: it was paused or cut off, leave it out",
        says="messages.{index}: `{name}` tool use with id `{id}` was found without a corresponding "
        "`{name}_tool_result` block",
        find=anthropic.server_call_without_result,
    ),
    Rule(
        id="anthropic.tool-use-id",
        demand="An id is made of letters, digits, `_` and `-`.",
        message="the id has other characters than letters, digits, _ and -: rename it in the call and in its result",
        says="{dotted}: String should match pattern '^[a-zA-Z0-9_-]+$'",
        find=anthropic.wrong_id,
    ),
    Rule(
        id="anthropic.message-empty",
        demand="Every message has content, but for a last one of the assistant's.",
        message="the message has no content: leave it out",
        says="messages.{index}: all messages must have non-empty content except for the optional final assistant "
        "message",
        find=anthropic.empty_message,
    ),
    Rule(
        id="anthropic.text-empty",
        demand="No text block is empty.",
        message="the text is empty: leave the block out",
        says="messages: text content blocks must be non-empty",
        find=anthropic.empty_text,
    ),
    Rule(
        id="anthropic.text-blank",
        level=ProblemLevel.WARNING,
        demand="No text block is of spaces only. (One beside a call was accepted.)",
        message="the text is blank: leave the block out",
        says="messages: text content blocks must contain non-whitespace text",
        find=anthropic.blank_text,
    ),
    Rule(
        id="anthropic.prefill",
        level=ProblemLevel.BY_MODEL,
        demand="The last message is the user's, with models that do not go on with a begun reply (an error for Opus "
        "4.6 and later).",
        message="the request ends with an assistant message, which not every model goes on with: end it with one of "
        "the user's",
        says="This model does not support assistant message prefill. The conversation must end with a user message.",
        find=anthropic.prefill,
    ),
    Rule(
        id="anthropic.thinking-last",
        demand="An assistant turn does not end with a thinking block.",
        message="the turn ends with a thought: leave it out, or send the text or the calls that it led to behind it",
        says="messages.{index}: The final block in an assistant message cannot be `thinking`.",
        find=anthropic.ends_with_thinking,
    ),
    Rule(
        id="anthropic.thinking-missing",
        demand="With thinking enabled, an assistant turn of the open tool loop begins with a thinking block.",
        message="thinking is enabled, and no assistant turn of this tool loop begins with a thought: send them as they "
        "came, or disable thinking",
        says="{dotted}.type: Expected `thinking` or `redacted_thinking`, but found `{kind}`. When `thinking` is "
        "enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of "
        "`tool_use` and `tool_result` blocks).",
        find=anthropic.loop_without_thinking,
    ),
    Rule(
        id="anthropic.thinking-disabled",
        level=ProblemLevel.BY_MODEL,
        demand="Where thinking is not enabled, a last assistant message holds no thinking block.",
        message="thinking is off, and the last assistant message holds a thought: leave it out, or enable thinking",
        says="{dotted}: When thinking is disabled, an `assistant` message in the final position cannot contain "
        "`thinking`. To use thinking blocks, enable `thinking` in your request.",
        find=anthropic.thinking_disabled,
    ),
    Rule(
        id="anthropic.thinking-unsigned",
        demand="Every thinking block carries the signature that it came with.",
        message="the thought has no signature: send it as it came, or leave it out",
        says="{dotted}: Invalid `signature` in `thinking` block",
        find=anthropic.unsigned,
    ),
    Rule(
        id="anthropic.first-not-user",
        level=ProblemLevel.WARNING,
        demand="The first message is the user's. (Accepted today; older versions and proxies refuse anything else.)",
        message="the first message is not the user's, which older versions and proxies refuse: begin with one that is",
        says='messages: first message must use the "user" role',
        find=anthropic.first_not_user,
    ),
)
