"""Deliberately wrong stores: each breaks exactly the properties of the contract that it names.

They are what the contract is tested with, and what any other checker of stores can be: a test that no wrong store fails
proves nothing. Each is the store of ``turnlog.storage.whole_logs`` over ``turnlog.testing.dict_store`` with a few lines
changed; the pages in this folder hold the changes, and say what goes wrong.
"""

from __future__ import annotations

from typing import Final

from turnlog.testing.wrong_stores.changes import WrongStore, written_down

__all__ = ["WRONG_STORES", "WrongStore"]

#: Every wrong store, by its name.
WRONG_STORES: Final = {store.name: store for store in written_down()}
