"""What is different in the requests of the providers: where things stand, and how they are read and written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from msgspec import Struct

from turnlog.errors import InvalidValueError
from turnlog.formats import anthropic, bedrock, gemini, openai_chat, openai_responses
from turnlog.formats import tools as tool_forms
from turnlog.formats.gemini.reading import SYSTEM, read_system
from turnlog.formats.json_fields import is_object
from turnlog.formats.loss import Loss, Notes
from turnlog.formats.openai_responses.writing import NOTHING
from turnlog.formats.tools import ToolForm, ToolSpec
from turnlog.log.messages import AssistantMessage, Message, Native

_MISSING: Final[dict[str, Callable[[Any], list[tuple[str, str]]]]] = {
    openai_chat.FORMAT: openai_chat.missing,
    openai_responses.FORMAT: openai_responses.missing,
    anthropic.FORMAT: anthropic.missing,
    gemini.FORMAT: gemini.missing,
    bedrock.FORMAT: bedrock.missing,
}


class ProviderForm(Struct, frozen=True):
    """The form of a provider's requests. ``main`` is the key of the messages, ``system`` those of the instructions."""

    name: str
    main: str
    system: tuple[str, ...]
    parse_parts: Callable[[Any, Any, str | None], list[Message]]
    render_parts: Callable[[Sequence[Message], Notes | None], dict[str, Any]]
    tools: ToolForm
    #: What stands under the key where nobody says anything, if the key can be absent then.
    nothing: list[dict[str, Any]] | None = None
    #: The keys under one of which stands what the request goes on from in that case.
    goes_on: tuple[str, ...] = ()
    #: Whether calls and results are taken only where tools are defined.
    needs_tools: bool = False

    def parse(self, fields: dict[str, Any]) -> tuple[list[Message], set[str]]:
        """The messages, and the keys that they say all of."""
        if self.main not in fields and self.nothing is None:
            raise InvalidValueError(f"the request has no {self.main!r}")
        key = next((key for key in self.system if key in fields), None)
        instructions = self.parse_parts([], fields.get(key) if key else None, key)
        main = fields.get(self.main)
        messages = instructions
        if main is not None or self.nothing is None:
            messages = self.parse_parts(main, fields.get(key) if key else None, key)
        known = {key} if key is not None and instructions else set[str]()
        if len(messages) > len(instructions):
            known.add(self.main)
        return messages, known

    def render(self, messages: Sequence[Message], notes: Notes | None) -> dict[str, Any]:
        """The keys that hold the messages."""
        return self.render_parts(messages, notes)

    def lost_native(self, index: int, native: Native) -> list[Loss]:
        """What an original says that is not sent in this form."""
        is_own = native.format == self.name
        why = "the message has changed since it came" if is_own else f"{self.name} has no place for it"
        missing = _MISSING.get(native.format)
        place = f"messages[{index}]"
        try:
            found = [("", f"what {native.format} keeps")] if missing is None else missing(native.data)
        except InvalidValueError:
            found = [("", f"what {native.format} keeps, which cannot be read")]
        return [Loss(f"{place}{path}", what, why) for path, what in found]

    def lost_rest(self, rest: dict[str, Any], target: ProviderForm) -> list[Loss]:
        """What of a request's other keys is not sent to another provider; empty values say nothing."""
        found: list[Loss] = []
        for key, value in rest.items():
            if key == self.tools.key:
                found += self._lost_tools(value, target)
            elif key != self.main and (value or value == 0):
                found.append(Loss(f"rest.{key}", key, f"an option of {self.name}, not known to {target.name}"))
        return found

    def _lost_tools(self, value: Any, target: ProviderForm) -> list[Loss]:
        found: list[Loss] = []
        for entry, place in self.tools.entries(value):
            tools = self.tools.read(entry, place)
            if tools is None:
                name = str(entry.get("type") or next(iter(entry), "tool"))[:40]
                found.append(Loss(f"rest.{place}", name, f"a tool that only {self.name} has"))
            elif self.tools.render(tools) != self.tools.around([entry]):
                why = f"{target.name} is told name, description and schema"
                found.append(Loss(f"rest.{place}", "options of a tool", why))
        if self.tools.inner is not None and is_object(value):
            why = f"an option of {self.name}, not known to {target.name}"
            found += (Loss(f"rest.{self.tools.key}.{key}", key, why) for key in value if key != self.tools.inner)
        return found


def _chat_parts(messages: Any, _system: Any, _key: str | None) -> list[Message]:
    return openai_chat.parse_messages(messages)


def _chat(messages: Sequence[Message], notes: Notes | None) -> dict[str, Any]:
    return {"messages": openai_chat.render(messages, notes)}


def _responses_parts(items: Any, system: Any, _key: str | None) -> list[Message]:
    return openai_responses.parse(items, system=system)


def _anthropic_parts(messages: Any, system: Any, _key: str | None) -> list[Message]:
    return anthropic.parse(messages, system=system)


def _gemini_parts(contents: Any, system: Any, key: str | None) -> list[Message]:
    if key is None or key == SYSTEM:
        return gemini.parse(contents, system=system)
    return read_system(system, key) + gemini.parse(contents)


def _bedrock_parts(messages: Any, system: Any, _key: str | None) -> list[Message]:
    return bedrock.parse(messages, system=system)


def tools_of_calls(messages: Iterable[Message]) -> tuple[ToolSpec, ...]:
    """A tool for each name that is called, for a provider that takes no calls of tools that are not defined."""
    names: dict[str, None] = {}
    for message in messages:
        if isinstance(message, AssistantMessage):
            names |= dict.fromkeys(call.name for call in message.tool_calls)
    return tuple(ToolSpec(name, "", {}) for name in names)


#: By name.
PROVIDERS: Final = {
    form.name: form
    for form in (
        ProviderForm(openai_chat.FORMAT, "messages", (), _chat_parts, _chat, tool_forms.OPENAI_CHAT),
        ProviderForm(
            openai_responses.FORMAT,
            "input",
            ("instructions",),
            _responses_parts,
            openai_responses.render,
            tool_forms.OPENAI_RESPONSES,
            nothing=NOTHING,
            goes_on=("previous_response_id", "conversation", "prompt"),
        ),
        ProviderForm(
            anthropic.FORMAT, "messages", ("system",), _anthropic_parts, anthropic.render, tool_forms.ANTHROPIC
        ),
        ProviderForm(
            gemini.FORMAT,
            "contents",
            (SYSTEM, "system_instruction"),
            _gemini_parts,
            gemini.render,
            tool_forms.GEMINI,
        ),
        ProviderForm(
            bedrock.FORMAT,
            "messages",
            ("system",),
            _bedrock_parts,
            bedrock.render,
            tool_forms.BEDROCK,
            needs_tools=True,
        ),
    )
}
