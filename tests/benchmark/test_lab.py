"""How the benchmark compares: on a clock that the calls themselves move, so that every figure is exact."""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle

import pytest

from benchmarks import lab
from benchmarks.lab import ROUNDS, Result, Subject, compare, compared, spread


class Clock:
    """Stands in for the module ``time``."""

    def __init__(self) -> None:
        self.now = 0

    def perf_counter_ns(self) -> int:
        return self.now

    def taking(self, *microseconds: int) -> Callable[[], None]:
        """A call that takes these times, in turn."""
        times = cycle(microseconds)

        def call() -> None:
            self.now += next(times) * 1_000

        return call


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(lab, "time", clock)
    return clock


def test_a_ratio_is_turnlog_divided_by_hand(clock: Clock) -> None:
    found = compare(clock.taking(300), clock.taking(200), visits=3)
    assert (found.ratio, found.own, found.by_hand) == (1.5, 300, 200)
    assert found.note == "300 µs; by hand 200 µs"


def test_a_few_slow_calls_decide_nothing(clock: Clock) -> None:
    assert compare(clock.taking(300, 300, 9_000), clock.taking(200, 7_000, 200), visits=6).ratio == 1.5


def test_subjects_are_compared_with_one_another(clock: Clock) -> None:
    subjects = [Subject(clock.taking(own), clock.taking(50)) for own in (100, 120, 130)]
    found = compared(subjects, visits=4)
    assert [each.ratio for each in found] == [2.0, 2.4, 2.6]
    assert spread(found) == pytest.approx(1.3)


def test_what_has_grown_is_made_anew_before_each_round(clock: Clock) -> None:
    renewed: list[int] = []
    compared([Subject(clock.taking(1), clock.taking(1), lambda: renewed.append(1))], visits=2)
    assert len(renewed) == ROUNDS


@pytest.mark.parametrize(
    ("measured", "at_least", "holds"),
    [(1.99, False, True), (2.0, False, True), (2.01, False, False), (1.99, True, False), (2.0, True, True)],
)
def test_a_bound_is_met_up_to_itself(measured: float, at_least: bool, holds: bool) -> None:  # noqa: FBT001 - a row
    assert Result("figure", measured, 2.0, at_least=at_least).holds is holds


@pytest.mark.parametrize("at_least", [False, True])
def test_what_was_not_measured_is_not_met(at_least: bool) -> None:  # noqa: FBT001 - a row
    assert not Result("figure", None, 2.0, at_least=at_least).holds
