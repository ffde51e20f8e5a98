"""The folder in memory and the prepared file of the fault tests."""

from __future__ import annotations

from tests.faults.conftest import folder, template

__all__ = ["folder", "template"]
