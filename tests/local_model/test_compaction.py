"""C-3, C-6 with a real model: a long conversation is compacted again and again, and stays within its budget."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.local_model.server import local_model
from turnlog import AssistantMessage, SessionService, UserMessage
from turnlog.compaction import SummarizingCompactionStrategy, TokenCountTrigger, WindowCompactionStrategy
from turnlog.log.tokens import message_tokens
from turnlog.models import chat_summarizer

pytestmark = [pytest.mark.local_model, pytest.mark.timeout(1_800)]

BUDGET = 1_200
TURNS = 200
COMPACTIONS = 5
TOPICS = ("a trip to Oslo", "the tomato bed", "the broken bicycle", "a birthday cake", "the tax letter")


def test_a_conversation_of_200_turns_is_compacted_five_times(tmp_path: Path) -> None:
    attempts, landed = 0, 0
    with local_model() as model, SessionService.open(f"sqlite:{tmp_path}/long.db") as service:
        service.create("long")
        counter = service.repository.token_counter
        strategy = SummarizingCompactionStrategy(
            chat_summarizer(model),
            WindowCompactionStrategy(max_tokens=BUDGET),
            max_summary_tokens=100,
            max_input_tokens=1_000,
        )
        for turn in range(TURNS):
            topic = TOPICS[turn % len(TOPICS)]
            question = (
                f"Question {turn} about {topic}: what should I do next, and what did we decide about step {turn % 7}?"
            )
            answer = (
                f"For {topic}, step {turn % 7}: do item {turn}, then check the list. We decided on option {turn % 3}."
            )
            service.append_message("long", UserMessage(question))
            service.append_message("long", AssistantMessage(answer))
            if (turn + 1) % (TURNS // COMPACTIONS):
                continue
            attempts += 1
            result = service.compact("long", strategy, trigger=TokenCountTrigger(BUDGET))
            sys.stdout.write(f"turn {turn}: {result.tokens_before} -> {result.tokens_after} {result.reason}\n")
            if not result.is_unchanged:
                landed += 1
                view = service.active_messages("long")
                assert sum(message_tokens(message, counter) for message in view) <= BUDGET
                assert result.summary[1].text.strip()
                assert result.usage is not None
        assert attempts == COMPACTIONS
        assert landed >= 3
        real = [event for event in service.events("long") if event.is_message and not event.is_synthetic]
        assert len(real) == 2 * TURNS
