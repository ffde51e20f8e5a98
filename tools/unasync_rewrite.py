"""One async module's syntax tree made sync; knows nothing of files or of the table's form."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import libcst as cst
from libcst.helpers import get_full_name_for_node, parse_template_expression

# What must not be left in a twin, in code as in prose.
# `async_compaction` is an option of both colours.
_LEFTOVER = re.compile(
    r"\b(?!_?async_compaction\b)(?:\w*[Aa]sync\w*|[Aa]wait\w*|__a(?:enter|exit|iter|next)__|aclose|aiter|anext)\b"
)


@dataclass(frozen=True)
class Rename:
    """One entry of the table. ``scope`` is the source file that it is for; empty means all."""

    old: str
    new: str
    kind: Literal["names", "prose"]
    scope: str = ""


def rewritten(text: str, rewriter: Rewriter) -> str:
    """The sync form of an async module's text; ``rewriter.matched`` then counts what the renames found."""
    module = cst.parse_module(text).visit(rewriter)
    return module.visit(_MovedImports(rewriter.left_modules, rewriter.needed_modules)).code


def leftovers(text: str) -> Iterator[str]:
    """Every word of a twin that still speaks of async, with its line, once a line."""
    for number, line in enumerate(text.splitlines(), start=1):
        for word in sorted(set(_LEFTOVER.findall(line))):
            yield f"{word!r} is left in line {number} of the twin, {line.strip()!r}: name it in the table or reword it"


class Rewriter(cst.CSTTransformer):
    """Takes ``async`` and ``await`` away and applies the renames of one file."""

    def __init__(self, renames: Sequence[Rename]) -> None:
        super().__init__()
        self.matched: Counter[Rename] = Counter()
        self.left_modules: set[str] = set()
        self.needed_modules: set[str] = set()
        # Of two entries for one word the earlier counts: that of the single file.
        self._names = {rename.old: rename for rename in reversed(renames) if rename.kind == "names"}
        self._in_code_strings = _Replacement(self._names.values(), self._new)
        self._in_prose = _Replacement([rename for rename in renames if rename.kind == "prose"], self._new)
        self._docstrings: set[cst.BaseExpression] = set()

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:
        return updated_node.with_changes(asynchronous=None)

    def leave_With(self, original_node: cst.With, updated_node: cst.With) -> cst.With:
        return updated_node.with_changes(asynchronous=None)

    def leave_For(self, original_node: cst.For, updated_node: cst.For) -> cst.For:
        return updated_node.with_changes(asynchronous=None)

    def leave_CompFor(self, original_node: cst.CompFor, updated_node: cst.CompFor) -> cst.CompFor:
        return updated_node.with_changes(asynchronous=None)

    def leave_Await(self, original_node: cst.Await, updated_node: cst.Await) -> cst.BaseExpression:
        inner = updated_node.expression
        if "\n" not in cst.Module([]).code_for_node(updated_node):
            return inner  # the operand of await binds as tightly as an expression can: no parentheses needed
        return inner.with_changes(lpar=[*updated_node.lpar, *inner.lpar], rpar=[*inner.rpar, *updated_node.rpar])

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.Name:
        rename = self._names.get(original_node.value)
        return updated_node if rename is None else updated_node.with_changes(value=self._new(rename))

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.BaseExpression:
        rename = self._names.get(get_full_name_for_node(original_node) or "")
        if rename is None:
            return updated_node
        self.left_modules.add(rename.old.rpartition(".")[0])
        if "." in rename.new:
            self.needed_modules.add(rename.new.rpartition(".")[0])
        return parse_template_expression(self._new(rename)).with_changes(lpar=updated_node.lpar, rpar=updated_node.rpar)

    def leave_ImportFrom(self, original_node: cst.ImportFrom, updated_node: cst.ImportFrom) -> cst.ImportFrom:
        if isinstance(updated_node.names, cst.ImportStar):
            return updated_node
        # An async name and its sync twin, imported side by side, have become the same.
        once = {(alias.evaluated_name, alias.evaluated_alias): alias for alias in updated_node.names}
        last = list(once.values())[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
        return updated_node.with_changes(names=[*list(once.values())[:-1], last])

    def visit_Expr(self, node: cst.Expr) -> None:
        self._docstrings.add(node.value)

    def leave_SimpleString(self, original_node: cst.SimpleString, updated_node: cst.SimpleString) -> cst.SimpleString:
        text = original_node.value
        if original_node in self._docstrings:
            text = self._in_prose(text)
        return updated_node.with_changes(value=self._in_code_strings(text))

    def leave_FormattedStringText(
        self, original_node: cst.FormattedStringText, updated_node: cst.FormattedStringText
    ) -> cst.FormattedStringText:
        return updated_node.with_changes(value=self._in_code_strings(original_node.value))

    def leave_Comment(self, original_node: cst.Comment, updated_node: cst.Comment) -> cst.Comment:
        return updated_node.with_changes(value=self._in_code_strings(self._in_prose(original_node.value)))

    def _new(self, rename: Rename) -> str:
        self.matched[rename] += 1
        return rename.new


class _Replacement:
    """Replaces whole words and phrases in one pass, the longest first, so that no replacement is replaced again."""

    def __init__(self, renames: Collection[Rename], new: Callable[[Rename], str]) -> None:
        self._renames = {rename.old: rename for rename in reversed(list(renames))}
        longest_first = sorted(self._renames, key=len, reverse=True)
        self._pattern = re.compile("|".join(rf"(?<!\w){re.escape(old)}(?!\w)" for old in longest_first) or r"(?!)")
        self._new = new

    def __call__(self, text: str) -> str:
        return self._pattern.sub(lambda match: self._new(self._renames[match[0]]), text)


class _MovedImports(cst.CSTTransformer):
    """Replaces ``import old`` of modules that the dotted renames left by imports of those they now need."""

    def __init__(self, left: Collection[str], needed: Collection[str]) -> None:
        super().__init__()
        self._left = left
        self._needed = needed

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine | cst.FlattenSentinel[cst.SimpleStatementLine]:
        match original_node.body:
            case [cst.Import(names=[alias])] if alias.evaluated_name in self._left:
                # Where the old module is still in use, its name is a leftover, or the linter finds it undefined.
                imports = [cst.SimpleStatementLine([_import(module)]) for module in sorted(self._needed)]
                return cst.FlattenSentinel(imports)
            case _:
                return updated_node


def _import(module: str) -> cst.Import:
    name = parse_template_expression(module)
    if not isinstance(name, cst.Name | cst.Attribute):
        raise TypeError(f"{module} is not a module name")
    return cst.Import([cst.ImportAlias(name)])
