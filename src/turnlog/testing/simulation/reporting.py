"""What is told of a run: a report, or the error that holds what went wrong, and how to repeat it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable
from typing import Final

from msgspec import Struct

from turnlog.testing.simulation.weather import Weather
from turnlog.testing.simulation.world import World

_LINES_SHOWN: Final = 60


class Report(Struct, frozen=True):
    """What a run was like. ``digest`` stands for the ``trace``: everything that happened in it, in order."""

    seed: int
    steps: int
    calls: int
    faults: int
    digest: str
    weather: Weather
    trace: tuple[str, ...]


class SimulationError(AssertionError):
    """The store was wrong in a run; ``trace`` is all that happened."""

    def __init__(self, seed: int, complaints: list[str], trace: list[str], command: str) -> None:
        shown = "\n".join([*trace[-_LINES_SHOWN:], *complaints])
        super().__init__(f"{shown}\nto repeat it: {command} --seed {seed}")
        self.seed = seed
        self.complaints = complaints
        self.trace = trace


def judged(seed: int, world: World, faults_of: Callable[[], Iterable[str]], *, command: str, passing: str) -> Report:
    """Run it, and report, or raise ``SimulationError``; ``faults_of`` judges its end, ``command`` repeats a seed.

    What the pattern ``passing`` matches is left out of the trace: it differs from run to run, and nothing else does.
    """
    weather = world.weather
    try:
        world.run()
        complaints = world.shared.oracle.complaints or list(faults_of())
    finally:
        world.end()
    trace = [re.sub(passing, "store", f"{who} {what}") for who, what in world.shared.trace]
    if complaints:
        raise SimulationError(seed, complaints, trace, command)
    digest = hashlib.blake2b("\n".join(trace).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    faults = sum(program.faults for program in world.programs)
    return Report(seed, world.steps, world.calling.calls, faults, digest, weather, tuple(trace))
