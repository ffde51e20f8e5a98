"""The conversation that comes with turnlog, for a chat without a model."""

from __future__ import annotations

import json
from importlib.resources import files

from turnlog.formats.openai_chat import parse_messages
from turnlog.log.messages import Message


def example_messages() -> list[Message]:
    """A made-up conversation of three turns, with tools."""
    text = (files("turnlog.cli.chatting") / "example.jsonl").read_text("utf-8")
    return parse_messages([json.loads(line) for line in text.splitlines()])
