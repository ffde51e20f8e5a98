"""The providers' own packages, imported when a model needs one."""

from __future__ import annotations

import importlib
import os
from typing import Any, Final

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
