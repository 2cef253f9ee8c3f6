"""Go's text templates, as far as the alarms' texts use them, so that a message can be read without Grafana.

Known: fields (``.Labels.probe``), texts, numbers, pipes, brackets, ``if``/``else``/``end``, ``range``, ``define``, ``template``, the trim
marks, and the functions in ``FUNCTIONS`` (of Go, and of Prometheus, which Grafana gives to annotations). Anything else is an error:
a text that this cannot render must not go out. A missing field is ``[no value]``, as in Grafana.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote_plus

from tandem_dashboards.alarms.figures import humanize_1024, humanize_duration, humanize_percentage, printed

_ACTION = re.compile(r"\{\{(-(?=\s))?\s*(.*?)\s*((?<=\s)-)?\}\}", re.DOTALL)
_WORD = re.compile(r'\s*("(?:[^"\\]|\\.)*"|`[^`]*`|-?\d+(?:\.\d+)?|\.[A-Za-z_][\w.]*|\.|[A-Za-z_]\w*|[()|])')


class TemplateError(ValueError):
    """A template that Go would refuse, or that has more than is known here."""


class _Absent:
    def __str__(self) -> str:
        return "[no value]"

    def __bool__(self) -> bool:
        return False


ABSENT = _Absent()
Functions = Mapping[str, Callable[..., Any]]


def _escaped(text: object) -> str:
    return quote_plus(str(text))


FUNCTIONS: Functions = {
    "len": len,
    "eq": lambda a, *b: a in b,
    "gt": lambda a, b: a > b,
    "printf": printed,
    "urlquery": _escaped,
    "humanizeDuration": humanize_duration,
    "humanizePercentage": humanize_percentage,
    "humanize1024": humanize_1024,
    "reReplaceAll": lambda pattern, by, text: re.sub(pattern.replace("\\z", "\\Z"), by, text),
}


@dataclass(frozen=True)
class _Node:
    sort: str
    text: str = ""
    body: tuple[_Node, ...] = ()
    otherwise: tuple[_Node, ...] = ()


def render(text: str, data: Any, functions: Functions | None = None, defined: str = "") -> str:  # noqa: ANN401 any template's data
    """``text`` with ``data``; ``defined``: text with further ``define``s. TemplateError."""
    known = {**FUNCTIONS, **(functions or {})}
    templates: dict[str, tuple[_Node, ...]] = {}
    for source in (defined, text):
        body, rest, _ = _parsed(_pieces(source), templates)
        if rest:
            raise TemplateError("an {{ end }} or {{ else }} too many")
    return _Rendering(known, templates).all(body, data)


def _pieces(text: str) -> list[_Node]:
    found: list[_Node] = []
    at, trimmed = 0, False
    for action in _ACTION.finditer(text):
        plain = text[at : action.start()]
        plain = plain.lstrip() if trimmed else plain
        found.append(_Node("text", plain.rstrip() if action[1] else plain))
        found.append(_Node("action", action[2]))
        at, trimmed = action.end(), bool(action[3])
    found.append(_Node("text", text[at:].lstrip() if trimmed else text[at:]))
    if any("{{" in node.text for node in found if node.sort == "text"):
        raise TemplateError("a {{ without its }}")
    return found


def _parsed(
    pieces: Sequence[_Node], templates: dict[str, tuple[_Node, ...]]
) -> tuple[tuple[_Node, ...], Sequence[_Node], str]:
    """Nodes up to an ``end`` or ``else``, what follows it, and which it was."""
    made: list[_Node] = []
    while pieces:
        here, *pieces = pieces
        word, _, rest = here.text.partition(" ")
        if here.sort == "text":
            made.append(here)
        elif word in ("end", "else"):
            return tuple(made), pieces, here.text
        elif word in ("if", "range", "define"):
            body, pieces, closed = _parsed(pieces, templates)
            otherwise: tuple[_Node, ...] = ()
            if closed == "else" and word != "define":
                otherwise, pieces, closed = _parsed(pieces, templates)
            if closed != "end":
                raise TemplateError(f"{{{{ {here.text} }}}} has no end")
            if word == "define":
                templates[rest.strip().strip('"')] = body
            else:
                made.append(_Node(word, rest, body, otherwise))
        elif word == "template":
            made.append(_Node("template", rest))
        else:
            made.append(here)
    return tuple(made), [], ""


class _Rendering:
    def __init__(self, functions: Functions, templates: Mapping[str, tuple[_Node, ...]]) -> None:
        self._functions, self._templates = functions, templates

    def all(self, nodes: Sequence[_Node], dot: Any) -> str:  # noqa: ANN401 any template's data
        return "".join(self._one(node, dot) for node in nodes)

    def _one(self, node: _Node, dot: Any) -> str:  # noqa: ANN401 any template's data
        if node.sort == "text":
            return node.text
        if node.sort == "if":
            return self.all(node.body if self._pipeline(node.text, dot) else node.otherwise, dot)
        if node.sort == "range":
            items = self._pipeline(node.text, dot)
            return "".join(self.all(node.body, item) for item in items) if items else self.all(node.otherwise, dot)
        if node.sort == "template":
            name, _, given = node.text.partition(" ")
            if name.strip('"') not in self._templates:
                raise TemplateError(f"there is no template {name}")
            return self.all(self._templates[name.strip('"')], self._pipeline(given, dot) if given.strip() else None)
        return _shown(self._pipeline(node.text, dot))

    def _pipeline(self, text: str, dot: Any) -> Any:  # noqa: ANN401 any template's data
        words = _words(text)
        value, at = self._commands(words, 0, dot)
        if at != len(words):
            raise TemplateError(f"{{{{ {text} }}}}: {words[at]!r} is not understood")
        return value

    def _commands(self, words: Sequence[str], at: int, dot: Any) -> tuple[Any, int]:  # noqa: ANN401 any template's data
        value, at = self._command(words, at, dot, ())
        while at < len(words) and words[at] == "|":
            value, at = self._command(words, at + 1, dot, (value,))
        return value, at

    def _command(self, words: Sequence[str], at: int, dot: Any, piped: tuple[Any, ...]) -> tuple[Any, int]:  # noqa: ANN401
        if at >= len(words):
            raise TemplateError("an action without a word")
        first = words[at]
        arguments: list[Any] = []
        head, at = (None, at + 1) if first in self._functions else self._term(words, at, dot)
        while at < len(words) and words[at] not in ("|", ")"):
            argument, at = self._term(words, at, dot)
            arguments.append(argument)
        called = self._functions.get(first, head)
        if not callable(called):
            if arguments or piped:
                raise TemplateError(f"{first} takes no arguments")
            return head, at
        try:
            return called(*arguments, *piped), at
        except (TypeError, ValueError, ZeroDivisionError) as error:
            raise TemplateError(f"{first}: {error}") from error

    def _term(self, words: Sequence[str], at: int, dot: Any) -> tuple[Any, int]:  # noqa: ANN401 any template's data
        word = words[at]
        if word == "(":
            value, at = self._commands(words, at + 1, dot)
            if at >= len(words) or words[at] != ")":
                raise TemplateError("a bracket is not closed")
            return value, at + 1
        if word[0] in '"`':
            return (word[1:-1] if word[0] == "`" else word[1:-1].encode().decode("unicode_escape")), at + 1
        if word[0].isdigit() or (word[0] == "-" and len(word) > 1):
            return (float(word) if "." in word else int(word)), at + 1
        if word[0] == ".":
            return _field(dot, word), at + 1
        if word in self._functions:
            return self._functions[word](), at + 1
        raise TemplateError(f"there is no function {word!r}")


def _words(text: str) -> list[str]:
    words, at = [], 0
    while text[at:].strip():
        word = _WORD.match(text, at)
        if word is None:
            raise TemplateError(f"{{{{ {text} }}}}: {text[at:].strip()[:20]!r} is not understood")
        words.append(word[1])
        at = word.end()
    return words


def _field(dot: Any, path: str) -> Any:  # noqa: ANN401 any template's data
    value = dot
    for name in path.split(".")[1:]:
        if not name:
            continue
        if callable(value):
            value = value()
        if isinstance(value, Mapping):
            value = value.get(name, ABSENT)
        elif value is ABSENT:
            raise TemplateError(f"{path}: nothing has a field {name}")
        else:
            value = getattr(value, name, ABSENT)
    return value


def _shown(value: Any) -> str:  # noqa: ANN401 any template's data
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        raise TemplateError(f"the number {value} has no format; hint: Go would write a million as 1e+06")
    if value is ABSENT or isinstance(value, str | int):
        return str(value)
    raise TemplateError(f"{value!r} is no text")
