"""The table of the Responses API's rules."""

from __future__ import annotations

from typing import Final

from turnlog.formats.rules import openai_responses
from turnlog.formats.rules.openai_responses import Responses
from turnlog.formats.rules.problem import ProblemLevel
from turnlog.formats.rules.rule import Rule

RULES: Final[tuple[Rule[Responses], ...]] = (
    Rule(
        id="openai-responses.input-missing",
        demand="There is an input, or an earlier response, conversation or prompt is named.",
        message="there is nothing to answer: send an input, or name what to go on from",
        says="One of \"input\" or \"previous_response_id\" or 'prompt' or 'conversation_id' must be provided.",
        find=openai_responses.no_input,
    ),
    Rule(
        id="openai-responses.call-unanswered",
        demand="Every call has its output in the input. (Not asked of a request that goes on from stored items.)",
        message="call {id!a} has no output: add it behind the call, or leave the call out",
        says="No tool output found for {word} {id}.",
        find=openai_responses.unanswered,
    ),
    Rule(
        id="openai-responses.output-unexpected",
        demand="Every output has its call in the input. (Not asked of a request that goes on from stored items.)",
        message="the input has no call {id!a}: leave this output out, bring its call back, or name the earlier "
        "response",
        says="No tool call found for {word} output with call_id {id}.",
        find=openai_responses.unexpected,
    ),
    Rule(
        id="openai-responses.output-before-call",
        level=ProblemLevel.WARNING,
        demand="An output stands behind its call.",
        message="the output of call {id!a} stands before the call: move it behind",
        find=openai_responses.early_output,
    ),
    Rule(
        id="openai-responses.output-duplicate",
        level=ProblemLevel.BY_MODEL,
        demand="A call is answered once.",
        message="call {id!a} has a second output: keep the last one",
        says="Duplicate function_call_output for call_id {id}",
        find=openai_responses.second_output,
    ),
    Rule(
        id="openai-responses.call-duplicate",
        level=ProblemLevel.BY_MODEL,
        demand="No two calls have one call_id.",
        message="the call_id {id!a} stands in two calls: rename one, and in its output",
        says="Duplicate 'call_id': {id}",
        find=openai_responses.second_call,
    ),
    Rule(
        id="openai-responses.item-duplicate",
        demand="No id stands twice.",
        message="an item with the id {id!a} stands in the input already: leave this one out",
        says="Duplicate item found with id {id}. Remove duplicate items from your input and try again.",
        find=openai_responses.second_item,
    ),
    Rule(
        id="openai-responses.id-prefix",
        demand="The id of a function call begins with fc, of a message with msg, of a thought with rs. (Models of "
        "others: by model.)",
        message="the id {id!a} does not begin with {prefix}: leave the key out, the provider gives ids",
        says="Invalid '{place}': '{id}'. Expected an ID that begins with '{prefix}'.",
        find=openai_responses.wrong_prefix,
    ),
    Rule(
        id="openai-responses.id-too-long",
        demand="`id` and `call_id` have at most 64 characters. (Models of others: by model.)",
        message="the id has {length} characters, 64 are allowed: shorten it wherever it stands",
        says="Invalid '{place}': string too long. Expected a string with maximum length 64, but got a string with "
        "length {length} instead.",
        find=openai_responses.long_id,
    ),
    Rule(
        id="openai-responses.id-characters",
        demand="`id` and `call_id` are made of letters, digits, `_` and `-`. (Models of others: by model.)",
        message="the id {id!a} has other characters than letters, digits, _ and -: rename it wherever it stands",
        says="Invalid '{place}': '{id}'. Expected an ID that contains letters, numbers, underscores, or dashes, but "
        "this value contained additional characters.",
        find=openai_responses.wrong_id,
    ),
    Rule(
        id="openai-responses.reasoning-unfollowed",
        demand="A stored thought is followed by the very item that it led to, its id kept.",
        message="the item that the thought {id!a} led to does not follow it: send it unchanged, with its id, or leave "
        "the thought out",
        says="Item '{id}' of type 'reasoning' was provided without its required following item.",
        find=openai_responses.unfollowed,
    ),
    Rule(
        id="openai-responses.message-between-calls",
        level=ProblemLevel.BY_MODEL,
        demand="No message stands between a call and its output (an error for DeepSeek; OpenAI's own models take it).",
        message="a message stands here while call {id!a} waits for its output: move it before the calls",
        says="No tool output found for tool call {id}.",
        find=openai_responses.message_between_calls,
    ),
    Rule(
        id="openai-responses.part-of-role",
        demand="The parts of assistant messages are output_text and refusal; all others hold input parts.",
        message="a part of type {kind!a} has no place in a message of this role: the supported are {supported}",
        says="Invalid value: '{kind}'. Supported values are: {supported}.",
        find=openai_responses.wrong_part,
    ),
    Rule(
        id="openai-responses.item-not-stored",
        level=ProblemLevel.WARNING,
        demand="With `store` false, nothing that was stored is referred to: thoughts carry their encrypted content.",
        message="item {id!a} is known to the provider only if it was stored: send it whole, or leave it out",
        says="Item with id '{id}' not found. Items are not persisted when `store` is set to false. Try again with "
        "`store` set to true, or remove this item from your input.",
        find=openai_responses.not_stored,
    ),
)
