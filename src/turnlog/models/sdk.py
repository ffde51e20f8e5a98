"""The providers' own packages, imported when a model needs one."""

from __future__ import annotations

import importlib
import os
from types import TracebackType
from typing import Any, Final, Self

from turnlog.errors import MissingExtraError

#: What a server that asks for no key is sent, as the SDK does not go without one.
_NO_KEY: Final = "none"


def sdk(module: str) -> Any:
    """A module of ``openai`` or ``anthropic``; :class:`MissingExtraError` names the pip line where it is missing."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        raise MissingExtraError(package, (error.name or package).partition(".")[0]) from error


def made_client(package: str, name: str, api_key: str | None, base_url: str | None) -> Any:
    """A client of the package; what is None comes from the environment, by the SDK's own names.

    A server of one's own (``base_url``) often asks for no key: then none is needed.
    """
    module = sdk(package)
    key = api_key
    if key is None and base_url is not None and not os.environ.get(f"{package.upper()}_API_KEY"):
        key = _NO_KEY
    return getattr(module, name)(api_key=key, base_url=base_url)


class ClientOwner:
    """A model that closes the SDK's client with itself, if it has made it."""

    _client: Any
    _is_own_client: bool

    def close(self) -> None:
        """Close the client, if it was made here."""
        if self._is_own_client:
            self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class AsyncClientOwner:
    """:class:`ClientOwner` for tasks."""

    _client: Any
    _is_own_client: bool

    async def close(self) -> None:
        """Close the client, if it was made here."""
        if self._is_own_client:
            await self._client.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()
