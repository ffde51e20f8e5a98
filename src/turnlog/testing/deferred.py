"""``hypothesis.strategies``, imported when first used: the author of a store may do without it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnlog.errors import MissingExtraError

if TYPE_CHECKING:
    from hypothesis import strategies as st
    from hypothesis.strategies import DrawFn, SearchStrategy
else:
    # Named in annotations alone, which are not evaluated.
    DrawFn = SearchStrategy = Any

    class _Deferred:
        def __getattr__(self, name: str) -> Any:
            try:
                from hypothesis import strategies
            except ImportError as error:
                raise MissingExtraError("testing", "hypothesis") from error
            return getattr(strategies, name)

    st = _Deferred()

__all__ = ["DrawFn", "SearchStrategy", "st"]
