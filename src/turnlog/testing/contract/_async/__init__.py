"""The properties of a store: a class for each noun, a property in each test."""

from __future__ import annotations

from turnlog.testing.contract._async.appending import Appending
from turnlog.testing.contract._async.copying import Copying
from turnlog.testing.contract._async.criteria import Criteria
from turnlog.testing.contract._async.expiry import Expiry
from turnlog.testing.contract._async.keeping import Keeping
from turnlog.testing.contract._async.listing import Listing
from turnlog.testing.contract._async.opening import Opening
from turnlog.testing.contract._async.races import Races
from turnlog.testing.contract._async.reading import Reading
from turnlog.testing.contract._async.recall import Recall
from turnlog.testing.contract._async.replaying import Replaying
from turnlog.testing.contract._async.sessions import Sessions
from turnlog.testing.contract._async.tallying import Tallying
from turnlog.testing.contract._async.turns import Turns
from turnlog.testing.contract._async.view import View
from turnlog.testing.contract._async.windows import Windows

__all__ = [
    "Appending",
    "Copying",
    "Criteria",
    "Expiry",
    "Keeping",
    "Listing",
    "Opening",
    "Races",
    "Reading",
    "Recall",
    "Replaying",
    "Sessions",
    "Tallying",
    "Turns",
    "View",
    "Windows",
]
