"""What conftest.py promises: no store goes untested unseen, and all workers collect the same tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.slow  # each test starts pytest anew

_SKIPPING = {
    "test_skipped": """
        import pytest

        @pytest.mark.store
        def test_store():
            pytest.skip("no server here")

        def test_other():
            pytest.skip("another reason")

        @pytest.mark.store
        @pytest.mark.xfail(reason="known")
        def test_expected_failure():
            assert False
        """,
    "test_absent": """
        import pytest

        pytest.skip("no driver here", allow_module_level=True)
        """,
}


_UNSTABLE_IDS = {
    "test_sets": """
        import pytest

        @pytest.mark.parametrize("letters", [set("abcdefghijk")], ids=str)
        def test_letters(letters):
            pass
        """,
}


def _run(folder: Path, modules: dict[str, str], *arguments: str) -> str:
    (folder / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text(encoding="utf-8"), encoding="utf-8")
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(dedent(text), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-c", str(ROOT / "pyproject.toml"), "--rootdir", str(folder), "-n0"]
    run = subprocess.run(
        [*command, *arguments, "-p", "no:cacheprovider", str(folder)],
        capture_output=True,
        text=True,
        cwd=folder,
        check=False,
    )
    return run.stdout.splitlines()[-1] if run.stdout else run.stderr


def test_a_skipped_store_test_is_a_skip_on_a_machine_without_it(tmp_path: Path) -> None:
    assert "3 skipped, 1 xfailed" in _run(tmp_path, _SKIPPING)


@pytest.mark.parametrize("extra", [(), ("-n1",)], ids=["one process", "xdist"])
def test_a_skipped_store_test_and_module_fail_where_all_stores_are_required(
    tmp_path: Path, extra: tuple[str, ...]
) -> None:
    last = _run(tmp_path, _SKIPPING, "--require-stores", "--continue-on-collection-errors", *extra)
    assert "1 failed, 1 skipped, 1 xfailed, 1 error" in last


def test_workers_agree_on_ids_that_show_a_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONHASHSEED")
    assert "1 passed" in _run(tmp_path, _UNSTABLE_IDS, "-n2")
