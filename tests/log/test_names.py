"""Names: ids, branches, principals and other indexed values (R-8), and the ids that are made (V-3)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlog.errors import InvalidValueError
from turnlog.log.names import LONGEST_NAME, branch_chain, check_branch, check_name, new_id
from turnlog.testing.strategies import names


@pytest.mark.parametrize(
    "name",
    [
        "a",
        " ",
        " a ",
        "x" * 255,
        "👩‍👩‍👧" * 51,
        "\U0001f600" * 255,
        "%",
        "_",
        "*",
        "a'b\"c",
        "\u2028",
        "\u200b",
        "\ue000",
        "\U0010ffff",
        "\uffff",
    ],
    ids=ascii,
)
def test_a_name_comes_back_as_it_is(name: str) -> None:
    assert check_name("id", name) is name


@pytest.mark.parametrize("length", [0, 256, 10_000])
def test_a_name_has_1_to_255_code_points(length: int) -> None:
    with pytest.raises(InvalidValueError, match=f"id must have 1 to 255 characters, not {length}"):
        check_name("id", "x" * length)
    assert LONGEST_NAME == 255


def test_the_limit_counts_code_points_not_bytes_or_units() -> None:
    assert check_name("id", "\U0001f600" * 255)
    with pytest.raises(InvalidValueError):
        check_name("id", "\U0001f600" * 256)


@pytest.mark.parametrize("code", [0, 9, 10, 13, 0x1F, 0x7F, 0x80, 0x85, 0x9F, 0xD800, 0xDBFF, 0xDC00, 0xDFFF], ids=hex)
def test_control_characters_and_surrogates_are_refused(code: int) -> None:
    character = chr(code)
    for name in (character, f"a{character}", f"{character}a", f"a\u2028{character}"):
        with pytest.raises(InvalidValueError, match=f"at index {name.index(character)}"):
            check_name("id", name)


def test_surrogates_in_a_pair_are_refused_too() -> None:
    with pytest.raises(InvalidValueError, match="at index 0"):
        check_name("id", "\ud83d\ude00")


class _Text(str):
    __slots__ = ()


@pytest.mark.parametrize("value", [None, 1, b"a", _Text("a"), ["a"]])
def test_a_name_is_a_plain_string(value: object) -> None:
    with pytest.raises(InvalidValueError, match=f"id must be a string, not {type(value).__name__}"):
        check_name("id", value)


def test_the_error_says_what_was_refused_in_plain_characters() -> None:
    with pytest.raises(InvalidValueError) as caught:
        check_name("principal", "\ud800" + "x" * 200)
    assert str(caught.value).startswith("principal has a control or surrogate character at index 0: '\\ud800x")
    assert len(str(caught.value)) < 150


@given(names())
def test_every_generated_name_is_one(name: str) -> None:
    assert check_name("id", name) == name


@given(st.text(st.characters(exclude_categories=()), max_size=300))
def test_a_name_is_refused_exactly_when_a_rule_says_so(text: str) -> None:
    allowed = 1 <= len(text) <= 255 and not re.search("[\0-\x1f\x7f-\x9f\ud800-\udfff]", text)
    if allowed:
        assert check_name("id", text) == text
    else:
        with pytest.raises(InvalidValueError):
            check_name("id", text)


@pytest.mark.parametrize("branch", [None, "a", "a.b", "orch.researcher", "a b.ü", "A.a"])
def test_a_branch_is_none_or_a_path(branch: str | None) -> None:
    assert check_branch(branch) == branch


@pytest.mark.parametrize("branch", ["a..b", ".", ".a", "a.", "..", ""])
def test_a_branch_has_no_empty_segment(branch: str) -> None:
    with pytest.raises(InvalidValueError, match="branch"):
        check_branch(branch)


@pytest.mark.parametrize("branch", [1, ["a"], "a\n", "x" * 256, "a.\ud800"])
def test_a_branch_is_a_name(branch: object) -> None:
    with pytest.raises(InvalidValueError, match="branch"):
        check_branch(branch)


def test_the_chain_is_the_branch_and_its_ancestors() -> None:
    assert branch_chain("a.b.c") == ("a.b.c", "a.b", "a")
    assert branch_chain("ab") == ("ab",)


def test_an_id_is_a_uuid_of_version_7_with_the_time_in_front() -> None:
    before = time.time_ns() // 1_000_000
    made = uuid.UUID(new_id())
    after = time.time_ns() // 1_000_000
    assert made.version == 7
    assert made.variant == uuid.RFC_4122
    # The counter may have run ahead of the clock in this process, so there is no upper bound but a loose one.
    assert before <= made.int >> 80 <= after + 10_000


def test_an_id_is_written_in_lower_case_with_hyphens() -> None:
    assert re.fullmatch("[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", new_id())


@pytest.mark.parametrize(
    ("random", "made"),
    [(b"\xff" * 8, "12345678-9abc-7fff-bfff-ffffffffffff"), (b"\0" * 8, "12345678-9abc-7fff-8000-000000000000")],
)
def test_each_bit_of_an_id_has_its_place(monkeypatch: pytest.MonkeyPatch, random: bytes, made: str) -> None:
    """RFC 9562: 48 bits of milliseconds, the version, 12 bits that count, the variant, 62 random bits."""

    def bits(count: int) -> bytes:
        return random[:count]

    monkeypatch.setattr("turnlog.log.names._clock.tick", lambda: 0x1234_5678_9ABC << 12 | 0xFFF)
    monkeypatch.setattr(os, "urandom", bits)
    assert new_id() == made


def test_ids_increase_also_within_a_millisecond() -> None:
    made = [new_id() for _ in range(20_000)]
    assert made == sorted(made)
    assert len(set(made)) == len(made)


def test_ids_increase_when_the_clock_runs_back(monkeypatch: pytest.MonkeyPatch) -> None:
    first = new_id()
    monkeypatch.setattr(time, "time_ns", lambda: 0)
    assert first < new_id() < new_id()


def test_ids_differ_over_threads() -> None:
    threads, each = 8, 2_000
    together = threading.Barrier(threads)

    def make() -> list[str]:
        together.wait()
        return [new_id() for _ in range(each)]

    with ThreadPoolExecutor(threads) as pool:
        made = [future.result() for future in [pool.submit(make) for _ in range(threads)]]
    assert all(ids == sorted(ids) for ids in made)
    assert len({name for ids in made for name in ids}) == threads * each


FORKING = """
import os
from turnlog.log import names

made = [names.new_id() for _ in range(200)]
names._clock._lock.acquire()  # as if another thread were making an id at that moment
children = []
for _ in range(4):
    ours, theirs = os.pipe()
    if os.fork() == 0:
        os.write(theirs, " ".join(names.new_id() for _ in range(200)).encode())
        os._exit(0)
    os.close(theirs)
    children.append(ours)
for ours in children:
    with open(ours) as file:
        made += file.read().split()
print(*made)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
def test_ids_differ_after_fork_also_where_the_lock_was_held() -> None:
    done = subprocess.run([sys.executable, "-c", FORKING], capture_output=True, text=True, check=True, timeout=30)
    made = done.stdout.split()
    assert len(made) == len(set(made)) == 1000
