"""C-1, C-6, C-7, C-8: what the service does with a strategy's decision, on both embedded stores."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.compaction.building import Summariser, positions, service_with
from turnlog import (
    AssistantMessage,
    AsyncSessionService,
    EventFilter,
    InvalidValueError,
    SessionEvent,
    SessionNotFoundError,
    SessionService,
    UserMessage,
)
from turnlog.compaction import (
    CompactionPlan,
    CompactionRequest,
    SummarizingCompactionStrategy,
    Summary,
    SummaryRequest,
    TokenCountTrigger,
    TurnCountTrigger,
    WindowCompactionStrategy,
)
from turnlog.testing.factories import assistant, conversation, event, system, user

KEEP_ONE = WindowCompactionStrategy(last_turns=1)
LONG = "because " * 40


def long_turns(count: int) -> list[list[SessionEvent]]:
    return [
        [user(2 * n, f"question {n} {LONG}"), assistant(2 * n + 1, f"answer {n} {LONG}")] for n in range(1, count + 1)
    ]


@pytest.fixture(params=["memory:", "sqlite:"])
def service(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SessionService]:
    url = request.param if request.param == "memory:" else f"sqlite:{tmp_path}/c.db"
    with service_with(url, long_turns(5)) as opened:
        yield opened


def test_a_plain_window_covers_and_expands(service: SessionService) -> None:
    before = service.events("s")
    result = service.compact("s", WindowCompactionStrategy(last_turns=2))
    assert not result.is_unchanged
    assert positions(result.covered_events) == [1, 2, 3, 4, 5, 6]
    assert positions(result.preserved_events) == [7, 8, 9, 10]
    assert result.summary == ()
    assert result.boundary is not None
    assert result.boundary.position == 11
    assert result.tokens_estimated_saved == result.tokens_before - result.tokens_after > 0
    assert service.events("s") == [*before, result.boundary]
    assert service.expand("s", result.boundary) == list(result.covered_events)
    assert positions(service.events("s", EventFilter.active())) == [7, 8, 9, 10]


def test_a_trigger_that_does_not_fire_writes_nothing(service: SessionService) -> None:
    result = service.compact("s", KEEP_ONE, trigger=TurnCountTrigger(6))
    assert (result.is_unchanged, result.reason) == (True, "the trigger did not fire")
    assert service.version("s") == 10
    assert not service.compact("s", KEEP_ONE, trigger=TurnCountTrigger(5)).is_unchanged


def test_a_trigger_may_look_at_the_events(service: SessionService) -> None:
    def long_question(request: CompactionRequest) -> bool:
        return any(made.is_message and made.content.text.startswith("question 5") for made in request.events)

    assert not service.compact("s", KEEP_ONE, trigger=TurnCountTrigger(1) & long_question).is_unchanged
    assert service.compact("s", KEEP_ONE, trigger=lambda request: len(request.events) > 2).is_unchanged


def test_a_dry_run_says_the_same_and_writes_nothing(service: SessionService) -> None:
    planned = service.compact("s", KEEP_ONE, dry_run=True)
    assert service.version("s") == 10
    done = service.compact("s", KEEP_ONE)
    assert planned.boundary is None
    assert done.covered_events == planned.covered_events
    assert done.tokens_after == planned.tokens_after


def test_a_summary_stands_in_the_view_between_pinned_and_preserved(service: SessionService) -> None:
    told = Summariser()
    service.append_message("s", UserMessage("next"))
    result = service.compact("s", SummarizingCompactionStrategy(told, WindowCompactionStrategy(last_turns=2)))
    assert result.summary[1] == AssistantMessage("Told 1.")
    view = service.events("s", EventFilter.active())
    assert positions(view) == [13, 14, 9, 10, 11]
    assert [made.is_synthetic for made in view] == [True, True, False, False, False]
    for made in view[:2]:
        assert service.expand("s", made) == list(result.covered_events)
    assert all(service.expand("s", made) for made in view[:2])


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (lambda _: "", "the summary is blank"),
        (lambda request: request.text, "not shorter than what it tells"),
        (lambda request: request.text * 10, "tokens, more than"),
        (lambda _: 1 / 0, "ZeroDivisionError"),
        (lambda _: 3, "returns a str or a Summary"),
    ],
)
def test_case_b56_a_bad_summary_changes_nothing_and_is_not_asked_again(
    service: SessionService, answer: Callable[[SummaryRequest], str], reason: str
) -> None:
    told = Summariser(answer)
    strategy = SummarizingCompactionStrategy(told, KEEP_ONE, max_summary_tokens=900)
    log, view = service.events("s"), service.active_messages("s")
    result = service.compact("s", strategy)
    assert result.is_unchanged
    assert reason in result.reason
    assert (service.events("s"), service.active_messages("s")) == (log, view)
    assert service.compact("s", strategy).is_unchanged
    assert len(told.requests) == 1, "not before the view has grown by a fifth"
    service.append("s", [user(50, LONG * 2), assistant(51, LONG)])
    assert service.compact("s", strategy).is_unchanged
    assert len(told.requests) == 2


def test_what_is_appended_while_a_summariser_works_stays_unsummarised(service: SessionService) -> None:
    """C-7, CASE B43: it lands with the same summary."""

    def answer(_request: SummaryRequest) -> str:
        service.append("s", [user(60, "late"), assistant(61, "reply")])
        return "Short."

    told = Summariser(answer)
    result = service.compact("s", SummarizingCompactionStrategy(told, KEEP_ONE))
    assert not result.is_unchanged
    assert len(told.requests) == 1
    assert positions(service.events("s", EventFilter.active())) == [14, 15, 9, 10, 11, 12]
    assert result.boundary is not None
    assert positions(service.expand("s", result.boundary)) == [1, 2, 3, 4, 5, 6, 7, 8]


@pytest.mark.parametrize("winner", ["compact", "clear", "rewind"])
def test_another_boundary_meanwhile_wins(service: SessionService, winner: str) -> None:
    def answer(_request: SummaryRequest) -> str:
        other = SessionService(service.repository)
        if winner == "compact":
            assert not other.compact("s", WindowCompactionStrategy(last_turns=3)).is_unchanged
        elif winner == "clear":
            other.clear("s")
        else:
            other.rewind("s", 4)
        return "Short."

    result = service.compact("s", SummarizingCompactionStrategy(Summariser(answer), KEEP_ONE))
    assert result.is_unchanged
    assert "came first" in result.reason
    assert service.version("s") == 11


def test_a_session_deleted_meanwhile_stays_deleted(service: SessionService) -> None:
    def answer(_request: SummaryRequest) -> str:
        service.delete("s")
        return "Short."

    with pytest.raises(SessionNotFoundError):
        service.compact("s", SummarizingCompactionStrategy(Summariser(answer), KEEP_ONE))
    assert service.find("s") is None


def test_a_session_deleted_and_made_anew_meanwhile_is_another(service: SessionService) -> None:
    def answer(_request: SummaryRequest) -> str:
        service.delete("s")
        service.create("s")
        for batch in long_turns(8):
            service.append("s", batch)
        return "Short."

    assert service.compact("s", SummarizingCompactionStrategy(Summariser(answer), KEEP_ONE)).is_unchanged
    assert service.version("s") == 16


def test_only_one_compaction_runs_for_a_session(service: SessionService) -> None:
    inner: list[str] = []

    def answer(_request: SummaryRequest) -> str:
        inner.append(service.compact("s", KEEP_ONE).reason)
        return "Short."

    assert not service.compact("s", SummarizingCompactionStrategy(Summariser(answer), KEEP_ONE)).is_unchanged
    assert inner == ["another compaction of this session is running"]


def test_threads_that_compact_at_once_leave_one_summary(service: SessionService) -> None:
    told, barrier = Summariser(), threading.Barrier(4)
    services = [SessionService(service.repository) for _ in range(4)]
    results = []

    def work(own: SessionService) -> None:
        barrier.wait()
        results.append(own.compact("s", SummarizingCompactionStrategy(told, KEEP_ONE)))

    threads = [threading.Thread(target=work, args=(own,)) for own in services]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(not result.is_unchanged for result in results) == 1
    assert positions(service.events("s", EventFilter.active())) == [12, 13, 9, 10]


def test_appends_that_overtake_it_too_often_make_it_stand_down(
    service: SessionService, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository, append = service.repository, service.repository.append
    overtaken = iter(range(100, 120))

    def overtaking(session_id: str, events: Any, **options: Any) -> Any:
        if options.get("expected_version") is not None:
            append(session_id, [event(next(overtaken), UserMessage("late"))])
        return append(session_id, events, **options)

    monkeypatch.setattr(repository, "append", overtaking)
    result = service.compact("s", KEEP_ONE)
    assert result.is_unchanged
    assert "overtaken" in result.reason
    assert service.version("s") == 16


def test_an_interruption_writes_nothing_and_leaves_nothing_running(service: SessionService) -> None:
    def answer(_request: SummaryRequest) -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        service.compact("s", SummarizingCompactionStrategy(Summariser(answer), KEEP_ONE))
    assert service.version("s") == 10
    assert not service.compact("s", KEEP_ONE).is_unchanged


def test_a_strategy_of_ones_own_is_any_callable_and_is_checked(service: SessionService) -> None:
    def questions_only(request: CompactionRequest) -> CompactionPlan:
        kept = tuple(made for made in request.events if isinstance(made.message, UserMessage))
        return CompactionPlan(strategy="questions", preserved=kept)

    assert not service.compact("s", questions_only).is_unchanged
    assert positions(service.events("s", EventFilter.active())) == [1, 3, 5, 7, 9]

    def twice(request: CompactionRequest) -> CompactionPlan:
        return CompactionPlan(strategy="twice", preserved=request.events, pinned=request.events[:1])

    with pytest.raises(InvalidValueError, match="twice"):
        service.compact("s", twice)
    no_plan: Any = lambda _: None  # noqa: E731 - typed as anything on purpose
    with pytest.raises(InvalidValueError, match="returns a CompactionPlan"):
        service.compact("s", no_plan)


def test_an_unknown_session_is_an_error(service: SessionService) -> None:
    with pytest.raises(SessionNotFoundError):
        service.compact("nobody", KEEP_ONE)


def test_an_async_summariser_needs_the_async_service(service: SessionService) -> None:
    async def answer(_request: SummaryRequest) -> str:
        return "Short."

    result = service.compact("s", SummarizingCompactionStrategy(answer, KEEP_ONE))
    assert result.is_unchanged
    assert "async" in result.reason


async def test_the_async_service_takes_both_kinds(tmp_path: Path) -> None:
    async def asynchronous(_request: SummaryRequest) -> str:
        return "Awaited."

    def synchronous(_request: SummaryRequest) -> str:
        assert threading.current_thread() is not threading.main_thread(), "it would block the event loop"
        return "Called."

    async with AsyncSessionService.open(f"sqlite:{tmp_path}/a.db") as service:
        for name, summarize in (("x", asynchronous), ("y", synchronous)):
            await service.create(name)
            for made in conversation(3):
                await service.append(name, made.replace(session_id=name, message=made.content.replace()))
            await service.append_message(name, UserMessage(LONG))
            result = await service.compact(name, SummarizingCompactionStrategy(summarize, KEEP_ONE))
            assert [message.text for message in result.summary][1] in ("Awaited.", "Called.")


def test_tokens_are_summed_across_appends_and_boundaries(service: SessionService) -> None:
    counted: list[tuple[int, int]] = []

    def noted(request: CompactionRequest) -> bool:
        counted.append((request.turns, request.tokens))
        return False

    service.compact("s", KEEP_ONE, trigger=noted)
    service.append_message("s", UserMessage("one more"))
    service.compact("s", KEEP_ONE, trigger=noted)
    fresh = SessionService(service.repository)
    fresh.compact("s", KEEP_ONE, trigger=noted)
    service.rewind("s", 4)
    service.compact("s", KEEP_ONE, trigger=noted)
    assert [turns for turns, _ in counted] == [5, 6, 6, 2]
    assert counted[1] == counted[2]
    assert counted[0][1] < counted[1][1]
    assert service.compact("s", KEEP_ONE, trigger=TokenCountTrigger(counted[3][1] + 1)).is_unchanged


def test_a_stored_system_message_survives_every_compaction(service: SessionService) -> None:
    service.append("s", system(90, "be brief"))
    service.append("s", [user(91), assistant(92)])
    service.compact("s", KEEP_ONE)
    assert [message.text for message in service.active_messages("s")] == ["be brief", "question", "answer"]


def test_a_view_that_would_grow_stays_as_it_is(service: SessionService) -> None:
    def wordy(request: CompactionRequest) -> CompactionPlan:
        return CompactionPlan(strategy="wordy", preserved=request.events[2:], summary=Summary("word " * 2_000))

    result = service.compact("s", wordy)
    assert result.is_unchanged
    assert "would not shrink" in result.reason
    assert service.version("s") == 10


def test_a_plain_window_is_no_repetition_of_a_summary_that_failed(service: SessionService) -> None:
    """C-6: only the summary is not asked for again."""

    def broken(_request: SummaryRequest) -> str:
        raise TimeoutError("the model did not answer")

    assert service.compact("s", SummarizingCompactionStrategy(broken, KEEP_ONE)).is_unchanged
    again = service.compact("s", SummarizingCompactionStrategy(broken, KEEP_ONE))
    assert "tried before" in again.reason
    assert not service.compact("s", KEEP_ONE).is_unchanged
