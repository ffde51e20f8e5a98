"""Seeded runs of the store under everything that can go wrong (R-6, R-7, R-14, H-11; P1 to P9, P11 of histories)."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Final

import pytest

from turnlog.testing.simulation import simulate

_CHUNK: Final = 50
_SOAKED: Final = 1_000


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 2_000, _CHUNK))
def test_the_store_is_right_whatever_befalls_it(first: int) -> None:
    faults = sum(simulate(seed).faults for seed in range(first, first + _CHUNK))
    assert faults > _CHUNK, "the weather is too mild to tell anything"


@pytest.mark.soak
@pytest.mark.parametrize("first", range(0, 100_000, _SOAKED))
def test_the_store_is_right_whatever_befalls_it_for_long(first: int) -> None:
    for seed in range(first, first + _SOAKED):
        simulate(seed)


def test_a_seed_gives_the_same_run_in_every_process() -> None:
    seeds = range(3, 8)
    there = [f"seed {seed}: right; " for seed in seeds]
    for hash_seed in ("1", "2"):
        run = subprocess.run(
            [sys.executable, "-m", "turnlog.testing.simulation", "--seeds", f"{seeds[0]}-{seeds[-1]}"],
            env=os.environ | {"PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        )
        told = run.stdout.splitlines()
        digests = [line.rpartition(" ")[2] for line in told]
        assert [line[: len(start)] for line, start in zip(told, there, strict=True)] == there
        assert digests == [simulate(seed).digest for seed in seeds]
