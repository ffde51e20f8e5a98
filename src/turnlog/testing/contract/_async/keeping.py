"""TEXT, COPY: what is kept comes back as it was, whatever becomes of the caller's values (R-9)."""

from __future__ import annotations

from datetime import timedelta, timezone
from typing import Any

from turnlog.log.messages import (
    AssistantMessage,
    MediaPart,
    Message,
    Native,
    ReasoningPart,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    ToolStatus,
    UserMessage,
)
from turnlog.storage.changes import SessionChange
from turnlog.storage.protocol import AsyncSessionRepository
from turnlog.testing.clocks import START
from turnlog.testing.contract._async.setting import begun, state
from turnlog.testing.contract.exactness import exactly
from turnlog.testing.factories import event, own, session, user

TEXTS = (
    "",
    " ",
    "a\r\nb\tc\x1b[0m\x7f\x10",
    "İﬁß",
    "👩‍👩‍👧 🇩🇪",
    "e\u0301\u00e9",
    "\u2028\ufeff\uffff",
    "这是中文",
    "'; DROP TABLE x; --",
)
SURROGATES = ("\ud83d", "\ude00", "\ud83d\ude00", "😀", "a\udc88b", "\ude00\ud83d", "\x10d83d")

#: One message of every role and content form.
MESSAGES: tuple[Message, ...] = (
    SystemMessage("be kind"),
    UserMessage((TextPart("what is this?"), MediaPart(media_type="image/png", data=b"\x00\xff\xfe", name="a.png"))),
    UserMessage((MediaPart(url="https://example.org/a.png"), MediaPart(file_id="file-1", media_type="audio/wav"))),
    AssistantMessage((ReasoningPart(text="hm", signature="c2ln="), ReasoningPart(data="eA=="), TextPart("a cat"))),
    AssistantMessage((TextPart("no", refusal=True),)),
    AssistantMessage(None, tool_calls=(ToolCall("c1", "f", '{"a": 1}'), ToolCall("c1", "f", "not json {"))),
    AssistantMessage("", tool_calls=(ToolCall("", "", ""),)),
    ToolMessage(tuple(ToolResult(status.value, "x", status, "f") for status in ToolStatus)),
    ToolMessage((ToolResult("c", None), ToolResult("c", ""), ToolResult("c", (TextPart("a"), MediaPart(data=b""))))),
    ToolMessage(()),
)


class Keeping:
    """Lossless, and a copy of its own."""

    async def test_text_1_keeps_every_message(self, repository: AsyncSessionRepository) -> None:
        """Messages of every role, part and status come back equal, of the same types (R-9, CASE B44, B125, B127)."""
        await begun(repository, [event(n, message) for n, message in enumerate(MESSAGES, 1)])
        found = await repository.events("s")
        assert [made.message for made in found] == list(MESSAGES)
        assert exactly([made.message for made in found]) == exactly(list(MESSAGES))

    async def test_text_2_keeps_none_apart_from_empty(self, repository: AsyncSessionRepository) -> None:
        """No content is not empty content, in messages, results and values (R-9)."""
        contents = (None, "", None)
        await begun(repository, [event(n, AssistantMessage(text)) for n, text in enumerate(contents, 1)])
        await repository.append("s", [own(4, {"none": None, "empty": "", "list": [], "dict": {}})])
        found = await repository.events("s")
        assert [made.message for made in found[:3]] == [AssistantMessage(text) for text in contents]
        assert found[3].payload == {"none": None, "empty": "", "list": [], "dict": {}}

    async def test_text_3_keeps_any_text(self, repository: AsyncSessionRepository) -> None:
        """Control characters, marks, joined emoji and foreign scripts come back unchanged (R-9, CASE B131, B150)."""
        await self._round_trip(repository, TEXTS)

    async def test_text_4_keeps_nul(self, repository: AsyncSessionRepository) -> None:
        """NUL is kept, and what follows it (R-9)."""
        await self._round_trip(repository, ("\0", "a\0b", "\\u0000", "\0\0"))

    async def test_text_5_keeps_surrogates(self, repository: AsyncSessionRepository) -> None:
        """Surrogate code points come back as they were, lone, paired or in the wrong order (R-9, CASE B149)."""
        await self._round_trip(repository, SURROGATES)

    async def test_text_6_keeps_numbers_as_they_are(self, repository: AsyncSessionRepository) -> None:
        """``1``, ``1.0`` and ``True`` stay what they are, and so does any number that may be stored (R-9)."""
        numbers: list[Any] = [1, 1.0, True, 0, -0.0, False, 2**53 + 1, 2**64, -(10**30), 0.1, 1e308, 5e-324, 10**4299]
        await begun(repository, [own(1, {"n": numbers}), user(2, metadata={"n": numbers})])
        found = await repository.events("s")
        assert exactly(found[0].payload) == exactly({"n": numbers})
        assert exactly(found[1].metadata) == exactly({"n": numbers})

    async def test_text_7_keeps_megabytes(self, repository: AsyncSessionRepository) -> None:
        """5 MB of text in one message come back (R-9, CASE B129)."""
        text = "0123456789 abcde" * 330_000
        await begun(repository, [user(1, text)])
        assert (await repository.events("s"))[0].content.text == text

    async def test_text_8_keeps_deep_and_wide_values(self, repository: AsyncSessionRepository) -> None:
        """Values nested 200 deep, and with many keys in their order, come back (R-9)."""
        deep: dict[str, Any] = {}
        for _ in range(198):
            deep = {"k": deep}
        wide = {f"key {n}": n for n in range(1000, 0, -1)}
        await begun(repository, [own(1, {"deep": deep}), user(2, metadata=wide)])
        found = await repository.events("s")
        assert found[0].payload == {"deep": deep}
        assert found[1].metadata == wide

    async def test_text_9_keeps_metadata_and_native(self, repository: AsyncSessionRepository) -> None:
        """Metadata and native data of a message come back untouched, though they take no part in equality (V-1)."""
        native = Native("openai", {"role": "user", "unknown": [None, {"a": 1.0}]})
        message = UserMessage("hi", metadata={"deep": {"n": [1]}}, native=native)
        await begun(repository, [event(1, message, metadata={"at": "now"})])
        (found,) = await repository.events("s")
        assert exactly(found.message) == exactly(message)
        assert found.metadata == {"at": "now"}

    async def test_text_10_keeps_time_to_the_microsecond(self, repository: AsyncSessionRepository) -> None:
        """A timestamp comes back as the same moment in UTC, to the microsecond (V-3, CASE B104, B106)."""
        moments = [
            START.replace(microsecond=999_999),
            START.replace(year=1969, microsecond=1),
            START.replace(year=9999),
            START.replace(year=1, month=1, day=2),
            (START + timedelta(microseconds=3)).astimezone(timezone(timedelta(hours=9, minutes=30))),
        ]
        await begun(repository, [user(n, timestamp=moment) for n, moment in enumerate(moments, 1)])
        found = [made.timestamp for made in await repository.events("s")]
        assert found == moments
        assert {moment.utcoffset() for moment in found} == {timedelta()}

    async def test_text_11_keeps_session_metadata(self, repository: AsyncSessionRepository) -> None:
        """A session's metadata is kept like an event's, keys included (R-9)."""
        metadata = {"n": [1, 1.0, True, None], **{text: text for text in (*TEXTS, *SURROGATES, "a\0b")}}
        await repository.create(session(metadata=metadata))
        found = await repository.find("s")
        assert found is not None
        assert exactly(found.metadata) == exactly(metadata)

    async def test_copy_1_what_was_passed_in_may_change(self, repository: AsyncSessionRepository) -> None:
        """Changing a value after it was appended does not reach the log (CASE B36, B39, B79)."""
        batch = [own(1, {"list": [1]}), event(2, UserMessage("x", metadata={"list": [1]}), metadata={"list": [1]})]
        await begun(repository, batch)
        before = await state(repository)
        for made in batch:
            self._spoil(made)
        batch.clear()
        assert await state(repository) == before

    async def test_copy_2_what_was_returned_may_change(self, repository: AsyncSessionRepository) -> None:
        """Changing what ``append`` returned does not reach the log (CASE B36)."""
        batch = [own(1, {"list": [1]}), event(2, UserMessage("x", metadata={"list": [1]}), metadata={"list": [1]})]
        stored = await begun(repository, batch)
        before = await state(repository)
        for made in (*stored, *(await repository.append("s", batch)).events):
            self._spoil(made)
        assert await state(repository) == before

    async def test_copy_3_what_was_read_may_change(self, repository: AsyncSessionRepository) -> None:
        """Changing what was read does not reach the log, nor what is read next (CASE B36)."""
        await begun(repository, [own(1, {"list": [1]}), event(2, UserMessage("x", metadata={"list": [1]}))])
        before = await state(repository)
        for made in (*await repository.events("s"), *await repository.find_events("s", event_ids=["e1", "e2"])):
            self._spoil(made)
        async for batch in repository.iter_batches("s"):
            for made in batch:
                self._spoil(made)
            batch.clear()
        assert await state(repository) == before

    async def test_copy_4_session_metadata_may_change(self, repository: AsyncSessionRepository) -> None:
        """Changing a session's metadata, passed in or got out, does not reach the store (CASE B36)."""
        made = session(metadata={"list": [1]})
        returned = await repository.create(made)
        before = await state(repository)
        self._grow(made.metadata, returned.metadata)
        assert await state(repository) == before
        change: dict[str, Any] = {"other": [1]}
        updated = await repository.update("s", SessionChange(set=change))
        before = await state(repository)
        found = await repository.find("s")
        assert found is not None
        self._grow(change, updated.metadata, found.metadata, *(listed.metadata for listed in await repository.list()))
        assert await state(repository) == before

    def _grow(self, *every: dict[str, Any]) -> None:
        for metadata in every:
            for value in metadata.values():
                value.append(2)
            metadata["new"] = []

    async def _round_trip(self, repository: AsyncSessionRepository, texts: tuple[str, ...]) -> None:
        """The texts as content, call, result, value and key."""
        written = [
            made
            for n, text in enumerate(texts)
            for made in (
                event(
                    3 * n + 1, AssistantMessage(text, tool_calls=(ToolCall(text, text, text),), metadata={text: text})
                ),
                event(3 * n + 2, ToolMessage((ToolResult(text, text),)), metadata={"deep": [{text: text}]}),
                own(3 * n + 3, {text: [text]}),
            )
        ]
        await begun(repository, written)
        found = await repository.events("s")
        assert exactly(found) == exactly([made.replace(position=n) for n, made in enumerate(written, 1)])
        assert (await repository.append("s", written)).is_replay

    def _spoil(self, made: Any) -> None:
        """Change everything in an event that can be changed."""
        for values in (made.payload, made.metadata, made.message.metadata if made.message else None):
            if values:
                values["list"].append(2)
                values["new"] = 1
