"""``Window``: which of the events that matched are returned (F-4)."""

from __future__ import annotations

import pytest

from tests.log.untyped import untyped
from turnlog.errors import InvalidValueError
from turnlog.log.windows import Window, check_count

HUGE = 10**18


def test_all_cuts_nothing() -> None:
    assert Window.ALL.is_all
    assert Window() == Window.ALL


def test_last_keeps_turns_whole_unless_told_otherwise() -> None:
    window = Window.last(50)
    assert (window.newest, window.whole_turns, window.size, window.is_all) == (50, True, None, False)
    assert not Window.last(50, whole_turns=False).whole_turns
    assert not Window.last(50, False).whole_turns
    assert Window.last(50, False) != Window.last(50)


def test_a_page_has_ten_events_unless_told_otherwise() -> None:
    window = Window.page(3)
    assert (window.number, window.size, window.newest, window.is_all) == (3, 10, None, False)
    assert Window.page(3, 5) == Window.page(3, size=5)
    assert window != Window.page(3, 5)


@pytest.mark.parametrize("n", [0, -1, True, 1.0, "5", None])
def test_last_wants_a_positive_int(n: object) -> None:
    with pytest.raises(InvalidValueError, match="n of a last window must be an int of at least 1"):
        Window.last(untyped(n))


@pytest.mark.parametrize("whole_turns", [1, None, "yes"])
def test_whole_turns_is_a_bool(whole_turns: object) -> None:
    with pytest.raises(InvalidValueError, match="whole_turns must be a bool"):
        Window.last(1, untyped(whole_turns))


@pytest.mark.parametrize("number", [-1, False, 1.0, "1", None])
def test_a_page_number_counts_from_nought(number: object) -> None:
    with pytest.raises(InvalidValueError, match="page number must be an int of at least 0"):
        Window.page(untyped(number))


@pytest.mark.parametrize("size", [0, -1, True, 1.5, "1", None])
def test_a_page_size_is_positive(size: object) -> None:
    with pytest.raises(InvalidValueError, match="page size must be an int of at least 1"):
        Window.page(0, untyped(size))


def test_huge_figures_are_figures() -> None:
    assert Window.last(HUGE).newest == HUGE
    assert (Window.page(HUGE, HUGE).number, Window.page(HUGE, HUGE).size) == (HUGE, HUGE)


@pytest.mark.parametrize(
    "mixed",
    [
        {"newest": 1, "size": 1},
        {"number": 1},
        {"whole_turns": False},
        {"newest": 1, "number": 1},
        {"size": 1, "whole_turns": False},
    ],
)
def test_the_kinds_do_not_mix(mixed: dict[str, int]) -> None:
    """So windows that select the same are equal."""
    with pytest.raises(InvalidValueError):
        Window(**untyped(mixed))


@pytest.mark.parametrize("fields", [{"newest": 0}, {"newest": True}, {"size": 0}, {"size": 1, "number": -1}])
def test_the_constructor_checks_as_the_shortcuts_do(fields: dict[str, int]) -> None:
    with pytest.raises(InvalidValueError, match="must be an int of at least"):
        Window(**untyped(fields))


def test_windows_are_hashable_values() -> None:
    windows = {Window.ALL, Window(), Window.last(5), Window.last(5), Window.page(0, 5), Window.page(0, 5)}
    assert len(windows) == 3
    with pytest.raises(AttributeError):
        untyped(Window.ALL).newest = 1


def test_check_count_says_what_it_wants() -> None:
    assert check_count("after", 0, least=0) == 0
    with pytest.raises(InvalidValueError, match="after must be an int of at least 0, not -1"):
        check_count("after", -1, least=0)
