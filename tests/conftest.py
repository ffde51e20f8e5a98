"""What every test may use: Hypothesis profiles, the folder of recorded material, and the rule about missing stores."""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path
from random import SystemRandom

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parents[1]

#: Real conversations and requests; its README says whose they are.
DATA = ROOT / "tests" / "data"

# Nothing is judged by how long it takes. The profiles start from the one called default: where Hypothesis sees a CI
# it silently takes another one, without fresh examples.
_untimed = settings(
    settings.get_profile("default"), deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.register_profile("dev", _untimed, max_examples=50)
# The same examples on each run of the same code: a change is judged by what it does, not by what luck finds beside it.
settings.register_profile("ci", _untimed, max_examples=100, derandomize=True)
settings.register_profile("hunt", _untimed, max_examples=1_000)
settings.register_profile("soak", _untimed, max_examples=20_000)
settings.load_profile(os.environ.get("TURNLOG_HYPOTHESIS", "dev"))


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of recorded material."""
    return DATA


def pytest_configure() -> None:
    # Loading a vocabulary takes a second in each process that a test starts; the tests of counting name their counter.
    _ = os.environ.setdefault("TURNLOG_TOKEN_COUNTER", "characters/4")
    # The workers of one run must collect the same test ids, and an id may show a set: they get one hash seed, a new one
    # for each run.
    _ = os.environ.setdefault("PYTHONHASHSEED", str(SystemRandom().randrange(2**32)))


def pytest_report_header() -> str:
    return f"PYTHONHASHSEED={os.environ['PYTHONHASHSEED']} (of workers)"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--require-stores",
        action="store_true",
        help="a skipped test marked `store`, or a module that skips itself, fails: nothing may go untested unseen",
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    required = item.config.getoption("--require-stores") and item.get_closest_marker("store")
    expected_failure = hasattr(report, "wasxfail")
    if required and report.skipped and not expected_failure:
        report.outcome = "failed"
        report.longrepr = f"a store test must not be skipped here: {report.longrepr}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if collector.config.getoption("--require-stores") and report.skipped:
        report.outcome = "failed"
        report.longrepr = f"a whole module must not be skipped here: {report.longrepr}"
    return report
