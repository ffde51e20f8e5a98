"""H-1 with a real model: the adapters over the official SDKs, against a server that speaks all three APIs."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from tests.models.providers import PROVIDERS, WAYS, Provider, Way, asked
from turnlog import UserMessage
from turnlog.cli.chatting.local_server import local_server, model_file
from turnlog.models import Prompt

pytestmark = [pytest.mark.local_model, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def url() -> Generator[str]:
    path = model_file()
    assert path is not None, "scripts/local-model installs the model"
    with local_server(path) as address:
        yield address


@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda provider: provider.form)
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_real_model_answers(provider: Provider, way: Way, url: str) -> None:
    prompt = Prompt(
        messages=(UserMessage("What is the capital of France?"),), options={"temperature": 0, "max_tokens": 12}
    )
    base_url = url.removesuffix("/v1") if provider.server == "anthropic" else url
    with asked(provider, way, base_url=base_url, name="smollm2") as ask:
        answer = ask(prompt)
    assert answer.said.message.text.strip()
    assert answer.said.usage.input_tokens > 0
    assert answer.said.usage.output_tokens <= 12
    assert not way.is_streamed or answer.text == answer.said.message.text
