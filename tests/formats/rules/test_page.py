"""The page of provider rules says what the tables say."""

from __future__ import annotations

import re

from tests.conftest import ROOT
from turnlog.formats import ProblemLevel
from turnlog.formats.rules import PROVIDERS

PAGE = (ROOT / "docs" / "reference" / "provider-rules.md").read_text("utf-8")


def test_the_page_lists_every_rule_as_it_is_in_order() -> None:
    rows = re.findall(r"^\| `([\w-]+\.[\w-]+)` \| (\w+) \| (.*?) \| ?(.*?) ?\|$", PAGE, re.MULTILINE)
    rules = [rule for provider in PROVIDERS.values() for rule in provider.rules]
    assert rows == [(rule.id, rule.level, rule.demand, _cell(rule.says or "")) for rule in rules]


def test_the_page_explains_every_level_and_names_every_provider() -> None:
    assert all(f"| `{level}` |" in PAGE for level in ProblemLevel)
    assert all(f"`{name}`" in PAGE for name in PROVIDERS)


def _cell(says: str) -> str:
    return re.sub(r"\{(\w+)\}", r"‹\1›", says)
