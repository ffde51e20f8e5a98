"""The generator of sync twins, on small inputs."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from tests.conftest import ROOT
from tools.unasync import Table, UnasyncError, generate, main
from tools.unasync_rewrite import Rename, Rewriter, leftovers, rewritten

SOURCE = "src/package/_async.py"
TWIN = "src/package/_sync.py"


def sync(text: str, names: dict[str, str] | None = None, prose: dict[str, str] | None = None) -> str:
    """The twin's text of one module, formatting aside."""
    return rewritten(dedent(text), Rewriter(list(Table(names or {}, prose or {}).entries(SOURCE))))


def project(root: Path, text: str, table: str = "", source: str = SOURCE) -> Path:
    """A checkout with one async module and a table, whose path is returned."""
    path = root / source
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dedent(text), encoding="utf-8")
    table_path = root / "table.toml"
    table_path.write_text(dedent(table), encoding="utf-8")
    return table_path


@pytest.mark.parametrize(
    ("text", "twin"),
    [
        ("async def f(): return await g()", "def f(): return g()"),
        ("async def f():\n    async with a as b, c: pass", "def f():\n    with a as b, c: pass"),
        ("async def f():\n    async for x in y: yield x", "def f():\n    for x in y: yield x"),
        ("async def f(): return [x async for x in y]", "def f(): return [x for x in y]"),
        ("async def f(): return {x: 1 async for x in y if await z(x)}", "def f(): return {x: 1 for x in y if z(x)}"),
        ("async def f(): return (await g()).h", "def f(): return g().h"),
        ("async def f(): return -(await g()) ** 2", "def f(): return -g() ** 2"),
        ("async def f(): return await (g or h)()", "def f(): return (g or h)()"),
        ("async def f(): return (await g\n    .h()).i", "def f(): return (g\n    .h()).i"),
        ("async def f(): await g(); await h", "def f(): g(); h"),
    ],
)
def test_async_syntax_becomes_sync(text: str, twin: str) -> None:
    assert sync(text) == twin


@pytest.mark.parametrize(
    ("text", "twin"),
    [
        ("class AsyncBox(AsyncLid[AsyncBox]): pass", "class Box(AsyncLid[Box]): pass"),
        ("box.AsyncBox(AsyncBox=AsyncBox)", "box.Box(Box=Box)"),
        ("__all__ = ['AsyncBox', 'AsyncBoxes']", "__all__ = ['Box', 'AsyncBoxes']"),
        ("x: 'list[AsyncBox]' = f'{AsyncBox} is AsyncBox'", "x: 'list[Box]' = f'{Box} is Box'"),
        ("# an AsyncBox, no MyAsyncBox, no AsyncBoxes", "# an Box, no MyAsyncBox, no AsyncBoxes"),
        ("from a._async import AsyncBox as B", "from a._sync import Box as B"),
        ("from ._async import AsyncBox, Box", "from ._sync import Box"),
        ("from a import Box, AsyncBox", "from a import Box"),
    ],
)
def test_names_change_as_whole_words_everywhere(text: str, twin: str) -> None:
    assert sync(text, {"AsyncBox": "Box", "_async": "_sync"}) == twin


def test_names_that_swap_do_not_chain() -> None:
    assert sync("a('a b'); b", {"a": "b", "b": "a"}) == "b('b a'); a"


def test_a_dotted_name_takes_its_import_along() -> None:
    text = """\
        import asyncio
        import random

        async def pause():
            await asyncio.sleep(random.random())
            asyncio.Lock()
        """
    twin = """\
        import threading
        import time
        import random

        def pause():
            time.sleep(random.random())
            threading.Lock()
        """
    assert sync(text, {"asyncio.sleep": "time.sleep", "asyncio.Lock": "threading.Lock"}) == dedent(twin)


def test_prose_changes_in_docstrings_and_comments_only() -> None:
    text = '''\
        """Waits asynchronously."""
        # asynchronously, too
        x = "asynchronously"
        def f():
            """As asynchronously as can be; asynchronouslyness."""
        '''
    twin = '''\
        """Waits in place."""
        # in place, too
        x = "asynchronously"
        def f():
            """As in place as can be; asynchronouslyness."""
        '''
    assert sync(text, prose={"asynchronously": "in place"}) == dedent(twin)


@pytest.mark.parametrize(
    "line",
    [
        "import asyncio",
        "x: AsyncBox",
        "def __aenter__(self): ...",
        "self.aclose()",
        '"""Await it."""',
        "# an async thing",
        "raise StopAsyncIteration",
    ],
)
def test_a_word_that_still_speaks_of_async_is_a_leftover(line: str) -> None:
    (problem,) = leftovers(f"x = 1\n{line}\n")
    assert "line 2" in problem


def test_the_same_word_is_one_leftover_a_line_and_sync_words_are_none() -> None:
    assert len(list(leftovers("asyncio.x(asyncio.y)\nasyncio"))) == 2
    assert not list(leftovers("def waiting(sync, aces, iter): close()"))


def test_the_entry_of_one_file_goes_before_the_one_of_all() -> None:
    table = Table.parse({"names": {"a": "b"}, "files": {SOURCE: {"names": {"a": "c"}}}})
    own = Rewriter(list(table.entries(SOURCE)))
    assert rewritten("a", own) == "c"
    assert own.matched == {Rename("a", "c", "names", SOURCE): 1}
    assert rewritten("a", Rewriter(list(table.entries("src/other/_async.py")))) == "b"


def test_a_twin_is_marked_sorted_and_formatted(tmp_path: Path) -> None:
    text = "import zlib\nimport asyncio\nasync def f( ): await asyncio.sleep(zlib.x)\n"
    table = project(tmp_path, text, '[names]\n"asyncio.sleep" = "time.sleep"')
    assert main([], root=tmp_path, table=table) == 0
    assert (tmp_path / TWIN).read_text(encoding="utf-8") == dedent("""\
        # Generated by tools/unasync.py: edit the source, then run `make generate`.
        # Source: src/package/_async.py
        import time
        import zlib


        def f():
            time.sleep(zlib.x)
        """)


def test_every_module_of_a_folder_has_its_twin_below_tests_too(tmp_path: Path) -> None:
    _ = project(tmp_path, "async def f(): pass\n", source="tests/store/_async/test_append.py")
    _ = project(tmp_path, "async def g(): pass\n", source="src/package/_async/__init__.py")
    twins = generate(tmp_path, Table())
    assert {path.relative_to(tmp_path).as_posix() for path in twins} == {
        "tests/store/_sync/test_append.py",
        "src/package/_sync/__init__.py",
    }


def test_check_passes_on_what_was_written_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = project(tmp_path, "async def f(): pass\n")
    assert main(["--check"], root=tmp_path, table=table) == 1
    assert not (tmp_path / TWIN).exists()
    assert main([], root=tmp_path, table=table) == 0
    assert main(["--check"], root=tmp_path, table=table) == 0
    assert "1 twins are up to date" in capsys.readouterr().out


def test_check_compares_whole_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = project(tmp_path, "async def f(): pass\n")
    assert main([], root=tmp_path, table=table) == 0
    twin = tmp_path / TWIN
    twin.write_text(twin.read_text(encoding="utf-8") + "# by hand\n", encoding="utf-8")
    assert main(["--check"], root=tmp_path, table=table) == 1
    assert "-# by hand" in capsys.readouterr().out
    assert main([], root=tmp_path, table=table) == 0
    assert "by hand" not in twin.read_text(encoding="utf-8")


def test_a_twin_whose_source_is_gone_is_drift_and_goes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = project(tmp_path, "async def f(): pass\n")
    assert main([], root=tmp_path, table=table) == 0
    (tmp_path / SOURCE).unlink()
    assert main(["--check"], root=tmp_path, table=table) == 1
    assert "no async source any more" in capsys.readouterr().out
    assert main([], root=tmp_path, table=table) == 0
    assert not (tmp_path / TWIN).exists()


def test_a_file_written_by_hand_is_never_removed(tmp_path: Path) -> None:
    table = project(tmp_path, "x = 1\n", source=TWIN)
    assert main([], root=tmp_path, table=table) == 0
    assert (tmp_path / TWIN).exists()


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ('[names]\nAsyncBox = "Box"', "names entry 'AsyncBox' matches nothing"),
        ('[prose]\n"an async" = "a"', "prose entry 'an async' matches nothing"),
        (f'[files."{SOURCE}".names]\nAsyncBox = "Box"', f"'AsyncBox' matches nothing in {SOURCE}"),
        ('[files."src/gone/_async.py".names]\nf = "g"', "'f' matches nothing in src/gone/_async.py"),
        ('[name]\nAsyncBox = "Box"', "unknown section in the table: name"),
    ],
)
def test_a_table_that_says_more_than_is_true_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], table: str, problem: str
) -> None:
    assert main([], root=tmp_path, table=project(tmp_path, "async def f(): pass\n", table)) == 1
    assert problem in capsys.readouterr().err
    assert not (tmp_path / TWIN).exists()


def test_a_leftover_is_refused_with_its_file_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([], root=tmp_path, table=project(tmp_path, "async def f(): asyncio.gather()\n")) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"{SOURCE}: 'asyncio' is left in line 1")
    assert not (tmp_path / TWIN).exists()


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    _ = project(tmp_path, "async def f(): asyncio.gather(aiter)\n")
    with pytest.raises(UnasyncError) as caught:
        _ = generate(tmp_path, Table({"AsyncBox": "Box"}))
    assert len(str(caught.value).splitlines()) == 3


def test_the_twins_of_this_project_are_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check"]) == 0, capsys.readouterr()
    assert (ROOT / "tools" / "unasync.toml").exists()
