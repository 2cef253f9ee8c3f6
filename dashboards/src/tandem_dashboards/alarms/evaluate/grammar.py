"""The grammar of math expressions: text → tree. After ``pkg/expr/mathexp/parse`` of Grafana 11.

    O → A {"||" A}      A → C {"&&" C}      C → P {("==" | "!=" | ">" | ">=" | "<" | "<=") P}
    P → M {("+" | "-") M}     M → E {("*" | "/" | "%") E}     E → F {"**" F}
    F → number | name "(" O {O} ")" | "$" letters | "(" O ")" | ("!" | "-") F

Two habits of the original that trip people are kept: a run of symbols is one token (``$A==-1`` is an error, ``$A == -1`` is not), and the
name of a reference has letters only.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tandem_dashboards.alarms.evaluate.values import ExpressionError

_TOKEN = re.compile(
    r"\s*(?:(?P<reference>\$[A-Za-z]+)|(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<name>[A-Za-z]+)"
    r"|(?P<symbol>[!<>=&|+\-*/%]+)|(?P<bracket>[()])|(?P<comma>,))"
)
_LEVELS = (("||",), ("&&",), ("==", "!=", ">", ">=", "<", "<="), ("+", "-"), ("*", "/", "%"), ("**",))
_SYMBOLS = {symbol for level in _LEVELS for symbol in level} | {"!"}
_DEEPEST = 100


@dataclass(frozen=True)
class Constant:
    """A number as written."""

    value: float


@dataclass(frozen=True)
class Reference:
    """``$A``: what another query or expression made."""

    name: str


@dataclass(frozen=True)
class Unary:
    """``!`` or ``-``."""

    operator: str
    operand: Tree


@dataclass(frozen=True)
class Binary:
    """Two operands, put together by labels."""

    operator: str
    left: Tree
    right: Tree


@dataclass(frozen=True)
class Call:
    """``abs``, ``log`` and their like; which there are, the reckoning knows."""

    name: str
    arguments: tuple[Tree, ...]


Tree = Constant | Reference | Unary | Binary | Call


def parse(text: str) -> Tree:
    """ExpressionError names the place."""
    parser = _Parser(text)
    tree = parser.level(0)
    if parser.here:
        raise parser.unexpected()
    return tree


def references(tree: Tree) -> tuple[str, ...]:
    """Names of what the expression rests on, as they come."""
    if isinstance(tree, Reference):
        return (tree.name,)
    if isinstance(tree, Unary):
        return references(tree.operand)
    if isinstance(tree, Binary):
        return references(tree.left) + references(tree.right)
    if isinstance(tree, Call):
        return tuple(name for argument in tree.arguments for name in references(argument))
    return ()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text, self._tokens, self._next, self._depth = text, _tokens(text), 0, 0

    @property
    def here(self) -> tuple[str, str] | None:
        return self._tokens[self._next] if self._next < len(self._tokens) else None

    def unexpected(self) -> ExpressionError:
        found = "the end" if self.here is None else repr(self.here[1])
        return ExpressionError(f"math expression {self._text!r}: unexpected {found}")

    def level(self, number: int) -> Tree:
        if number == len(_LEVELS):
            return self._factor()
        tree = self.level(number + 1)
        while self.here and self.here[0] == "symbol" and self.here[1] in _LEVELS[number]:
            operator = self._taken()
            tree = Binary(operator, tree, self.level(number + 1))
        return tree

    def _taken(self) -> str:
        self._next += 1
        return self._tokens[self._next - 1][1]

    def _factor(self) -> Tree:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise ExpressionError(f"math expression: nested more than {_DEEPEST} deep")
        try:
            return self._whole_factor()
        finally:
            self._depth -= 1

    def _whole_factor(self) -> Tree:
        sort, text = self.here or ("end", "")
        if sort == "number":
            return Constant(float(self._taken()))
        if sort == "reference":
            return Reference(self._taken()[1:])
        if sort == "symbol" and text in ("!", "-"):
            return Unary(self._taken(), self._factor())
        if text == "(":
            self._taken()
            tree = self.level(0)
            self._close()
            return tree
        if sort == "name":
            return self._call()
        raise self.unexpected()

    def _call(self) -> Tree:
        name = self._taken()
        if self.here != ("bracket", "("):
            raise self.unexpected()
        self._taken()
        arguments: list[Tree] = []
        while self.here != ("bracket", ")"):
            if self.here is None:
                raise self.unexpected()
            arguments.append(self.level(0))
        self._close()
        return Call(name, tuple(arguments))

    def _close(self) -> None:
        if self.here != ("bracket", ")"):
            raise self.unexpected()
        self._taken()


def _tokens(text: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    at = 0
    while text[at:].strip():
        token = _TOKEN.match(text, at)
        if token is None:
            raise ExpressionError(f"math expression {text!r}: no expression at {text[at:].strip()[:20]!r}")
        sort = str(token.lastgroup)
        if sort == "symbol" and token["symbol"] not in _SYMBOLS:
            raise ExpressionError(
                f"math expression {text!r}: no operator {token['symbol']!r}; hint: part symbols with spaces"
            )
        found.append((sort, token[sort]))
        at = token.end()
    return found
