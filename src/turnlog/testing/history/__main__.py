"""`python -m turnlog.testing.history FILE... [--final LOGS.json]`: check what recorders wrote.

Without `--final` the final log of a session is its last whole read, which must have been made after all else had come
back. Exits with 0 if the history is right, with 1 and the violations if not, and with 2 if it cannot tell: a file that
cannot be read, a session without a final log.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from turnlog.testing.history.checker import check_history
from turnlog.testing.history.logs import final_logs, load_final_logs
from turnlog.testing.history.properties import PROPERTIES, Violation
from turnlog.testing.history.recorder import load_history
from turnlog.testing.history.records import FinalLog, Operation

_MOST_SHOWN: Final = 10


def main(arguments: Sequence[str] | None = None) -> int:
    """Check recorded files; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m turnlog.testing.history", description="Check recorded histories.")
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="what recorders wrote; merged")
    parser.add_argument("--final", type=Path, metavar="LOGS.json", help="the final log of each session")
    chosen = parser.parse_args(arguments)
    try:
        operations = load_history(*chosen.files)
        final = final_logs(operations) if chosen.final is None else load_final_logs(chosen.final)
    except (OSError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    violations = check_history(operations, final)
    sys.stdout.write(_report(operations, final, violations))
    return 1 if violations else 0


def _report(operations: Sequence[Operation], final: Mapping[str, FinalLog], violations: Sequence[Violation]) -> str:
    """What was checked, and the first violations of each property under its words."""
    sessions = {operation.session for operation in operations} | final.keys()
    lines = [f"{len(operations)} calls on {len(sessions)} sessions, {len(violations)} violations"]
    for property_id, words in PROPERTIES.items():
        found = [violation for violation in violations if violation.property_id == property_id]
        if found:
            lines += [f"\n{property_id}, {len(found)} times: {words}", *map(str, found[:_MOST_SHOWN])]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
