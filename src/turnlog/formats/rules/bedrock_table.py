"""The table of the Converse API's rules."""

from __future__ import annotations

from typing import Final

from turnlog.formats.rules import bedrock
from turnlog.formats.rules.bedrock import Bedrock
from turnlog.formats.rules.problem import ProblemLevel
from turnlog.formats.rules.rule import Rule

RULES: Final[tuple[Rule[Bedrock], ...]] = (
    Rule(
        id="bedrock.role",
        demand="A role is user or assistant.",
        message="no message has the role {role!a}: it is user or assistant; system text stands under 'system'",
        find=bedrock.wrong_role,
    ),
    Rule(
        id="bedrock.first-not-user",
        level=ProblemLevel.BY_MODEL,
        demand="The first message is the user's (no message at all is an error).",
        message="the conversation does not begin with a message of the user's: begin with one",
        says="A conversation must start with a user message. Try again with a conversation that starts with a user "
        "message.",
        find=bedrock.no_user,
    ),
    Rule(
        id="bedrock.roles-alternate",
        level=ProblemLevel.BY_MODEL,
        demand="The roles alternate.",
        message="the message has the role of the one before it: join the two",
        says="A conversation must alternate between user and assistant roles. Make sure the conversation alternates "
        "between user and assistant roles and try again.",
        find=bedrock.two_in_a_row,
    ),
    Rule(
        id="bedrock.tool-use-unanswered",
        demand="Every `toolUse` of an assistant turn has its `toolResult` in the user turn right after.",
        message="call {id!a} has no result in the next user turn: put its toolResult there, or leave the call out",
        says="Expected toolResult blocks at messages.{index}.content for the following Ids: {id}",
        find=bedrock.unanswered,
    ),
    Rule(
        id="bedrock.tool-result-unexpected",
        demand="Every `toolResult` has its `toolUse` in the assistant turn right before.",
        message="the turn before has no call {id!a}: leave this result out, or bring its call back",
        says="The number of toolResult blocks at messages.{index}.content exceeds the number of toolUse blocks of "
        "previous turn.",
        find=bedrock.unexpected,
    ),
    Rule(
        id="bedrock.tool-result-duplicate",
        demand="A call is answered once.",
        message="call {id!a} has a second result: keep the last one",
        says="The toolResult blocks at messages.{index}.content contain duplicate Ids: {id}",
        find=bedrock.second_result,
    ),
    Rule(
        id="bedrock.tool-use-duplicate",
        demand="The calls of one assistant turn have different ids.",
        message="the id {id!a} stands in two calls of one turn: give each call its own",
        says="The toolUse blocks at messages.{index}.content contain duplicate Ids: {id}",
        find=bedrock.second_call,
    ),
    Rule(
        id="bedrock.tool-use-id",
        demand="An id has 1 to 64 characters: letters, digits, `_`, `.`, `:` and `-`.",
        message="the id {id!a} is too long, empty, or has other characters than letters, digits, _ . : and -: rename "
        "it in the call and in its result",
        find=bedrock.wrong_id,
    ),
    Rule(
        id="bedrock.tool-config-missing",
        demand="A request with calls or results has a `toolConfig`.",
        message="there are calls or results, and no toolConfig: send the tools, even if none is to be called",
        says="The toolConfig field must be defined when using toolUse and toolResult content blocks.",
        find=bedrock.no_tools,
    ),
    Rule(
        id="bedrock.results-mixed",
        level=ProblemLevel.BY_MODEL,
        demand="A user turn with results holds nothing else. (Not asked of Anthropic's and Amazon's models; the model "
        "is read from `modelId`.)",
        message="the turn holds results and something else, which not every model takes: put a reply between them",
        says="messages.{index}.content: Conversation blocks and tool result blocks cannot be provided in the same "
        "turn.",
        find=bedrock.mixed,
    ),
    Rule(
        id="bedrock.message-empty",
        demand="Every message has content.",
        message="the message has no content: leave it out",
        says="The content field in the Message object at messages.{index} is empty.",
        find=bedrock.empty_message,
    ),
    Rule(
        id="bedrock.text-blank",
        level=ProblemLevel.BY_MODEL,
        demand="No text is empty, or of spaces only.",
        message="the text is blank: leave the block out",
        says="The text field in the ContentBlock object at {dotted} is blank. Add text to the text field, and try "
        "again.",
        find=bedrock.blank_text,
    ),
    Rule(
        id="bedrock.error-empty",
        demand="A result with the status error says something.",
        message="the result is an error and has no content: add a text",
        says="The content field at {dotted}.toolResult cannot be empty when status value is error.",
        find=bedrock.empty_error,
    ),
    Rule(
        id="bedrock.document-alone",
        demand="A user turn with a document has a text too.",
        message="there is a document and no text: add one",
        says="A text block must be included when using documents.",
        find=bedrock.lone_document,
    ),
)
