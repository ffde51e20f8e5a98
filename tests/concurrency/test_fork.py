"""A process forks with a store open, other threads and tasks writing: both sides go on, nothing hangs (H-13)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.concurrency.forking import SCENARIOS
from tests.conftest import ROOT

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="NOT TESTED: this system has no fork"),
    pytest.mark.timeout(120),
]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_fork(scenario: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.concurrency.forking", scenario, str(tmp_path)]
    # A deadlock ends here, with whatever has been said until then.
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False)
    assert ended.returncode == 0, ended.stderr
