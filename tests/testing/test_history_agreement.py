"""The checker against the search that tries every order.

What agreement means. A history is *plain* if its session is never deleted and every retry offers the batch it retries.
On plain histories the two must give the same answer: the checker finds no violation if and only if the search finds an
order. That covers P1 to P8, and P11 as far as creation goes; P9 follows from them, and is held against its definition,
applied to all pairs of calls. On other histories the checker must be sound: where the search finds an order, it is
silent.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.testing.history_generation import SESSION, History, seeded, tiny_history
from turnlog.testing.history import Conflict, FinalLog, Ok, Operation, Seen, check_history
from turnlog.testing.history.search import is_linearizable

BLOCK = 5_000
BLOCKS = 4
SOAK_BLOCKS = 20


def properties(history: History) -> set[str]:
    operations, final = history
    return {violation.property_id for violation in check_history(operations, {SESSION: final})}


def shown(history: History) -> str:
    operations, final = history
    calls = sorted(operations, key=lambda each: each.invoked_ns)
    found = check_history(operations, {SESSION: final})
    return "\n".join([*map(str, calls), str(final), "", *map(str, found)])


def assert_agreement(seeds: range) -> None:
    kinds: Counter[str] = Counter()
    for seed in seeds:
        random = seeded(seed)
        history = tiny_history(random, faults=random.choice((0, 1, 1, 2)))
        broken = properties(history)
        linearizable = is_linearizable(*history)
        assert linearizable == (not broken), f"seed {seed}, linearizable: {linearizable}\n{shown(history)}"
        assert broken != {"P9"}, f"seed {seed}\n{shown(history)}"
        kinds.update(broken or {"none"})
    # Agreement on histories that are all alike would mean little.
    assert kinds["none"] > 0.4 * len(seeds)
    assert all(
        kinds[each] > 0.004 * len(seeds) for each in ("P1", "P2", "P3", "P4", "P5", "P6", "P7", "P8", "P9", "P11")
    )


@pytest.mark.parametrize("block", range(BLOCKS))
def test_checker_and_search_agree_on_plain_histories(block: int) -> None:
    assert_agreement(range(block * BLOCK, (block + 1) * BLOCK))


@pytest.mark.soak
@pytest.mark.parametrize("block", range(BLOCKS, BLOCKS + SOAK_BLOCKS))
def test_checker_and_search_agree_on_many_plain_histories(block: int) -> None:
    assert_agreement(range(block * BLOCK, (block + 1) * BLOCK))


@given(st.randoms(use_true_random=False), st.integers(0, 3))
def test_checker_and_search_agree_where_hypothesis_leads(random: Random, faults: int) -> None:
    history = tiny_history(random, faults=faults)
    assert is_linearizable(*history) == (not properties(history)), shown(history)


def assert_soundness(seeds: range, *, deletes: bool, regroups: bool) -> None:
    right = found = 0
    for seed in seeds:
        random = seeded(seed)
        history = tiny_history(random, faults=random.choice((0, 1, 2)), deletes=deletes, regroups=regroups)
        broken = properties(history)
        if is_linearizable(*history):
            right += 1
            assert not broken, f"seed {seed}\n{shown(history)}"
        found += bool(broken)
    assert right > 0.4 * len(seeds)
    assert found > 0.2 * len(seeds)


@pytest.mark.parametrize(("deletes", "regroups"), [(True, False), (False, True), (True, True)])
def test_the_checker_is_sound_on_histories_with_deletes_and_regrouped_batches(*, deletes: bool, regroups: bool) -> None:
    assert_soundness(range(2_000), deletes=deletes, regroups=regroups)


@pytest.mark.soak
@pytest.mark.parametrize(("deletes", "regroups"), [(True, False), (False, True), (True, True)])
@pytest.mark.parametrize("block", range(1, 1 + SOAK_BLOCKS))
def test_the_checker_is_sound_on_many_such_histories(*, deletes: bool, regroups: bool, block: int) -> None:
    assert_soundness(range(block * BLOCK, (block + 1) * BLOCK), deletes=deletes, regroups=regroups)


def test_every_execution_of_a_plain_list_is_right_for_both() -> None:
    """The generator itself: without faults a history has an order, with deletes and regrouped batches too."""
    for seed in range(1_000):
        history = tiny_history(seeded(seed), deletes=seed % 2 == 0, regroups=seed % 3 == 0)
        assert is_linearizable(*history), f"seed {seed}\n{shown(history)}"
        assert not properties(history), f"seed {seed}\n{shown(history)}"


def least_known_after(operation: Operation, final: FinalLog) -> int:
    """The version of the log that the caller knows to be reached when the call has come back."""
    places = {entry.id: entry.position for entry in final.entries}
    match operation.outcome:
        case Ok():
            return max(places[event.id] for event in operation.events)
        case Conflict(actual):
            return actual
        case Seen(events, version, positions):
            last = positions[-1] if positions else places[events[-1].id] if events else 0
            return version if version is not None else last
        case _:
            return 0


def shows_less(read: Operation, version: int, final: FinalLog) -> bool:
    """Whether the read tells that the log was at a version below this one."""
    seen = read.outcome
    if not isinstance(seen, Seen):
        return False
    if seen.version is None and (read.window == "filtered" or (read.window == 0 and not seen.events)):
        return False
    return least_known_after(read, final) < version


def test_p9_is_what_its_definition_says_of_every_pair_of_calls() -> None:
    """P9, on histories in which nothing but order is wrong."""
    broken = 0
    for seed in range(6_000):
        random = seeded(seed)
        history = tiny_history(random, faults=random.choice((1, 2)))
        operations, final = history
        found = check_history(operations, {SESSION: final})
        if not all(" before " in violation.message for violation in found):
            continue
        expected = any(
            before.process == read.process
            and before.ended_ns < read.invoked_ns
            and shows_less(read, least_known_after(before, final), final)
            for read in operations
            for before in operations
        )
        assert ("P9" in {violation.property_id for violation in found}) == expected, f"seed {seed}\n{shown(history)}"
        broken += expected
    assert broken > 20


def test_the_search_refuses_what_would_take_it_forever() -> None:
    read = Operation(process="p", kind="read", session="s", invoked_ns=1, returned_ns=2, outcome=Seen())
    with pytest.raises(ValueError, match="at most 8 calls on one session, not 9"):
        is_linearizable([read] * 9, FinalLog())
