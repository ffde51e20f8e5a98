"""Generated JSON, and generated JSON that is nearly, but not quite, an OpenAI chat message."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

#: Any Unicode, lone surrogates included.
texts = st.text(st.characters(codec=None, exclude_categories=()), max_size=8)

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
    | st.sampled_from(["text", "image_url", "user", "tool", "data:image/png;base64,AAAA", "AAAA"])
)
json_values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=8
)

_KEYS = [
    *("role", "content", "name", "tool_calls", "tool_call_id", "function_call", "refusal", "audio", "reasoning"),
    *("type", "text", "image_url", "url", "input_audio", "data", "format", "file", "file_data", "file_id", "filename"),
    *("function", "custom", "id", "arguments", "input", "transcript", "reasoning_content", "detail"),
]

#: Objects with the API's keys and anything under them.
api_values: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_KEYS) | texts, inner, max_size=6),
    max_leaves=20,
)


@st.composite
def odd_messages(draw: st.DrawFn) -> Any:
    """Mostly objects with a role; the rest of each is right or wrong as it comes."""
    fields: dict[str, Any] = draw(st.dictionaries(st.sampled_from(_KEYS), api_values, max_size=5))
    role = draw(st.sampled_from(["system", "developer", "user", "assistant", "tool", "function", "critic", None]))
    return fields | {"role": role}


_parts = st.one_of(
    st.fixed_dictionaries({"type": st.just("text"), "text": texts}),
    st.fixed_dictionaries({"type": st.just("refusal"), "refusal": texts}),
    st.fixed_dictionaries(
        {
            "type": st.just("image_url"),
            "image_url": st.fixed_dictionaries(
                {
                    "url": st.sampled_from(
                        ["https://e.org/a.png", "data:image/png;base64,AAEC", "data:image/png;base64,A=="]
                    )
                },
                optional={"detail": st.sampled_from(["low", "high"])},
            ),
        }
    ),
    st.fixed_dictionaries(
        {
            "type": st.just("input_audio"),
            "input_audio": st.fixed_dictionaries(
                {"data": st.sampled_from(["UklGRg==", "<cut>"]), "format": st.sampled_from(["wav", "mp3", "flac"])}
            ),
        }
    ),
    st.fixed_dictionaries(
        {
            "type": st.just("file"),
            "file": st.sampled_from(
                [
                    {"file_id": "file-1"},
                    {"file_data": "data:application/pdf;base64,JVBERg==", "filename": "a.pdf"},
                    {"file_data": "JVBERg==", "filename": "a.pdf"},
                ]
            ),
        }
    ),
    st.fixed_dictionaries({"type": st.just("video_url"), "video_url": json_values}),
)
_contents = st.none() | texts | st.lists(_parts, max_size=3)
_function_calls: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {
        "id": texts,
        "type": st.just("function"),
        "function": st.fixed_dictionaries({"name": texts, "arguments": texts}),
    },
    optional={"index": st.integers(0, 3)},
)
_custom_calls: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {"id": texts, "type": st.just("custom"), "custom": st.fixed_dictionaries({"name": texts, "input": texts})}
)
_calls = st.lists(_function_calls | _custom_calls, max_size=3)


def _message(role: str, required: dict[str, Any], optional: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    unknown = st.dictionaries(st.sampled_from(["x", "cache_control", "annotations"]), json_values, max_size=1)
    known: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
        {"role": st.just(role), **required}, optional={"name": texts} | optional if "name" not in required else optional
    )
    return st.tuples(known, unknown).map(_merged)


def _merged(both: tuple[dict[str, Any], dict[str, Any]]) -> dict[str, Any]:
    return both[0] | both[1]


#: Right messages of every role and content form of the API.
messages = st.one_of(
    _message("system", {"content": _contents}, {}),
    _message("developer", {"content": _contents}, {}),
    _message("user", {"content": _contents}, {}),
    _message(
        "assistant",
        {},
        {
            "content": _contents,
            "tool_calls": st.none() | _calls,
            "refusal": st.none() | texts,
            "audio": st.none() | st.sampled_from([{"id": "a1"}, {"id": "a1", "data": "AAEC", "transcript": "hi"}]),
            "function_call": st.none() | st.fixed_dictionaries({"name": texts, "arguments": texts}),
            "reasoning_content": st.none() | texts,
        },
    ),
    _message("tool", {"content": _contents, "tool_call_id": texts}, {}),
    _message("function", {"content": _contents, "name": texts}, {}),
)
