"""``chat_summarizer``: a summariser from any chat model (C-3)."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import cast

from turnlog.compaction.plan import Summary
from turnlog.compaction.summary import SummaryRequest
from turnlog.models.protocol import AsyncChatModel, ChatModel, Prompt, Reply


def chat_summarizer(
    model: ChatModel | AsyncChatModel,
) -> Callable[[SummaryRequest], Summary | Awaitable[Summary]]:
    """Ask ``model`` with the default prompt, without tools; async where the model is.

    The answer's text alone becomes the summary: a model that answers with tool calls or nothing gives a blank one,
    which changes nothing (C-6).
    """
    if inspect.iscoroutinefunction(model.generate):
        in_tasks = cast("AsyncChatModel", model)

        async def summarize_async(request: SummaryRequest) -> Summary:
            return _summary(await in_tasks.generate(_prompt(request)))

        return summarize_async

    in_threads = cast("ChatModel", model)

    def summarize(request: SummaryRequest) -> Summary:
        reply = in_threads.generate(_prompt(request))
        return _summary(reply) if isinstance(reply, Reply) else Summary("")

    return summarize


def _prompt(request: SummaryRequest) -> Prompt:
    return Prompt(messages=tuple(request.messages()), options={"max_tokens": request.max_summary_tokens})


def _summary(reply: Reply) -> Summary:
    usage = (
        None
        if reply.usage is None
        else {
            "input_tokens": reply.usage.input_tokens,
            "output_tokens": reply.usage.output_tokens,
        }
    )
    return Summary(reply.message.text, reply.model, usage)
