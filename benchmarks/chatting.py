"""A model round through client and session advisors: what is added to the model's own time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle, repeat

from benchmarks.floor import bodies
from benchmarks.lab import Result, Scale, Subject, compared, spread
from benchmarks.logs import Log, logs
from benchmarks.traffic import events
from turnlog import EventFilter, SessionService
from turnlog.chat import ChatClient, SessionAdvisors
from turnlog.models.scripted import ScriptedModel

_WINDOW = EventFilter.last(50)


def results(scale: Scale) -> Iterator[Result]:
    """A row for each length of the log."""
    with logs(scale) as made:
        alone = [log for log in made if not log.others]
        found = compared([_round(log) for log in alone], scale.visits)
    name = "a model round: session, view of 50, guard, prompt, two appends ÷ a read of 50 and two inserts"
    for log, each in zip(alone, found, strict=True):
        yield Result(f"{name}, {log.name}", each.ratio, 2.5, note=each.note)
    yield Result("a model round, largest time ÷ smallest of these", spread(found), 1.25)


class _Caller:
    """Makes calls on a log, whose store is another one after each renewal."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._connect()

    def _connect(self) -> None:
        self._store = self._log.store
        advisors = SessionAdvisors(SessionService(self._store), event_filter=_WINDOW)
        self._client = ChatClient(ScriptedModel(repeat("Let me see what I can do for you.")), advisors=advisors)

    def call(self) -> object:
        """One turn of one round."""
        if self._store is not self._log.store:
            self._connect()
        return self._client.call("Where is my bag, and when does it arrive?", session_id="s")


def _round(log: Log) -> Subject:
    """Both sides append what a user and an assistant say."""
    kept = cycle(zip(*[iter(bodies(events("s", 40)))] * 2, strict=True))

    def by_hand() -> None:
        log.floor.last("s", 50)
        for body in next(kept):
            log.floor.append(1, body)

    return Subject(_Caller(log).call, by_hand, log.renew)
