"""R-13: what a release has written, every later one reads. CASE B145, B146."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from turnlog import EventFilter, SessionEvent, SessionService, UserMessage, open_store
from turnlog.formats import portable
from turnlog.storage.sql.drivers.sqlite import SqliteOptions, migrating

FILES = sorted((Path(__file__).parent / "files").glob("*.db"))


@pytest.fixture(params=FILES, ids=lambda path: path.stem)
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, list[bytes]]:
    """A copy of a release's file, at today's schema, and the export that the release made of it."""
    source: Path = request.param
    path = tmp_path / source.name
    shutil.copy(source, path)
    migrating.migrate(SqliteOptions(path=str(path)))
    return path, source.with_suffix(".jsonl").read_bytes().splitlines(keepends=True)


def test_there_is_a_file_of_this_release() -> None:
    assert FILES, "python -m tools.release_file VERSION writes one"


def test_everything_comes_back_as_it_was(kept: tuple[Path, list[bytes]]) -> None:
    path, expected = kept
    exported: list[bytes] = []
    with open_store(str(path)) as store:
        for session in store.list():
            exported += portable.write(session, store.version(session.id), store.iter_batches(session.id))
    assert exported == expected


def test_it_is_found_read_and_written_to(kept: tuple[Path, list[bytes]]) -> None:
    path, _ = kept
    with SessionService.open(str(path)) as service:
        assert [session.id for session in service.find_by_metadata("team", "blue")] == ["whole"]
        (call,) = service.search("whole", "not json").events
        assert call.id == "event-4"
        boundaries = [event for event in service.events("whole") if event.is_boundary]
        assert [(event.payload or {})["strategy"] for event in boundaries] == ["summary", "rewind", "clear"]
        assert [event.id for event in service.expand("whole", boundaries[0])][:2] == ["event-1", "event-2"]
        assert [message.text for message in service.active_messages("whole")] == ["Be brief."]
        version = service.version("whole")
        replay = SessionEvent(session_id="whole", id="after", message=UserMessage("After it."))
        assert service.append("whole", replay).is_replay
        service.append_message("whole", UserMessage("On."))
        assert service.version("whole") == version + 1
        assert service.events("whole", EventFilter.last(1))[0].position == version + 1
