"""`python -m turnlog.testing.simulation --seed 1234`: repeat a run exactly; `--seeds 0-999` runs many.

Exits with 0 if the store was right in all of them, with 1 and the end of the trace if not; `--trace` prints all of it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from turnlog.testing.simulation import Report, SimulationError, simulate


def main(
    arguments: Sequence[str] | None = None,
    run: Callable[[int], Report] = simulate,
    *,
    module: str = "turnlog.testing.simulation",
    store: str = "SQLite",
) -> int:
    """Run seeds until one fails; returns the exit code."""
    description = f"Run the {store} store under a seeded scheduler and judge it."
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=description)
    chosen = parser.add_mutually_exclusive_group(required=True)
    chosen.add_argument("--seed", type=int, help="one run")
    chosen.add_argument("--seeds", type=_span, metavar="FIRST-LAST", help="all runs of these seeds")
    parser.add_argument("--times", type=int, default=1, help="run each so often")
    parser.add_argument("--trace", action="store_true", help="print everything that happened")
    given = parser.parse_args(arguments)
    seeds: Sequence[int] = given.seeds if given.seed is None else (given.seed,)
    for seed in (seed for seed in seeds for _ in range(given.times)):
        try:
            report = run(seed)
        except SimulationError as error:
            sys.stdout.write("\n".join([*(error.trace if given.trace else ()), str(error), ""]))
            return 1
        if given.trace:
            sys.stdout.write("\n".join([*report.trace, ""]))
        told = f"{report.steps} steps, {report.calls} calls, {report.faults} faults, digest {report.digest}"
        sys.stdout.write(f"seed {seed}: right; {told}\n")
    return 0


def _span(text: str) -> range:
    first, _, last = text.partition("-")
    return range(int(first), int(last) + 1)


if __name__ == "__main__":
    sys.exit(main())
