"""Go's text templates, as far as the alarms' texts use them, and the message that people would get.

Known: fields (``.Labels.probe``), texts, numbers, ``if``/``else``/``end``, ``range``, ``define``, ``template``, the trim marks, and the
functions in ``FUNCTIONS`` (of Go, and of Prometheus, which Grafana gives to annotations). Anything else is an error: a text that this
cannot render must not go out. A missing field is ``[no value]``, as in Grafana.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote_plus

from support.grafana_alerting import Labels, Rule
from tandem_dashboards.alarms.provisioning import MESSAGE, TEMPLATE, TITLE

EXTERNAL_URL = "https://grafana.example.org/"
_ACTION = re.compile(r"\{\{(-(?=\s))?\s*(.*?)\s*((?<=\s)-)?\}\}", re.DOTALL)
_WORD = re.compile(r'\s*("(?:[^"\\]|\\.)*"|`[^`]*`|-?\d+(?:\.\d+)?|\.[A-Za-z_][\w.]*|\.|[A-Za-z_]\w*)(?=\s|$)')


class TemplateError(ValueError):
    """A template that Go would refuse, or that has more than is known here."""


class _Absent:
    def __str__(self) -> str:
        return "[no value]"

    def __bool__(self) -> bool:
        return False


ABSENT = _Absent()


# --- figures


def general(value: float) -> str:
    """Go's ``%.4g``."""
    if math.isfinite(value):
        return f"{value:.4g}"
    return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"


def printed(pattern: str, value: float) -> str:
    """``printf`` with one ``%.Nf``; ValueError for others."""
    if not re.fullmatch(r"%\.\df", pattern) or not isinstance(value, int | float):
        raise ValueError(f"printf {pattern!r} is not known here, or not of {value!r}")
    return pattern % value


def humanize_1024(value: float) -> str:
    """``1.5Gi``."""
    power = 0
    while math.isfinite(value) and abs(value) >= 1024 and power < 8:
        value, power = value / 1024, power + 1
    return general(value) + ("", "ki", "Mi", "Gi", "Ti", "Pi", "Ei", "Zi", "Yi")[power]


def humanize_percentage(value: float) -> str:
    """``85.3%`` of 0.853."""
    return general(value * 100) + "%"


def humanize_duration(value: float) -> str:
    """``2d 3h 4m 5s`` of seconds."""
    if not math.isfinite(value) or value == 0:
        return general(value) + ("s" if value == 0 else "")
    if abs(value) < 1:
        power = next((n for n in (1, 2) if abs(value) * 1000**n >= 1), 3)
        return f"{general(value * 1000**power)}{' mun'[power]}s"
    sign, whole = ("-" if value < 0 else ""), int(abs(value))
    parts = [(whole // 86_400, "d"), (whole // 3600 % 24, "h"), (whole // 60 % 60, "m"), (whole % 60, "s")]
    while len(parts) > 1 and parts[0][0] == 0:
        del parts[0]
    if len(parts) == 1:
        return f"{sign}{general(abs(value))}s"
    return sign + " ".join(f"{number}{unit}" for number, unit in parts)


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "len": len,
    "printf": printed,
    "urlquery": lambda text: quote_plus(str(text)),
    "humanizeDuration": humanize_duration,
    "humanizePercentage": humanize_percentage,
    "humanize1024": humanize_1024,
    "reReplaceAll": lambda pattern, by, text: re.sub(pattern.replace("\\z", "\\Z"), by, text),
}


# --- templates


@dataclass(frozen=True)
class _Node:
    sort: str
    text: str = ""
    body: tuple[_Node, ...] = ()
    otherwise: tuple[_Node, ...] = ()


def render(text: str, data: Any, functions: Mapping[str, Callable[..., Any]] | None = None, defined: str = "") -> str:
    """``text`` with ``data``; ``defined``: text with further ``define``s. TemplateError."""
    templates: dict[str, tuple[_Node, ...]] = {}
    for source in (defined, text):
        body, _, closed = _parsed(_pieces(source), templates)
        if closed:
            raise TemplateError("an {{ end }} or {{ else }} too many")
    return _Rendering({**FUNCTIONS, **(functions or {})}, templates).all(body, data)


def _pieces(text: str) -> list[_Node]:
    found: list[_Node] = []
    at, trimmed = 0, False
    for action in _ACTION.finditer(text):
        plain = text[at : action.start()]
        plain = plain.lstrip() if trimmed else plain
        found += [_Node("text", plain.rstrip() if action[1] else plain), _Node("action", action[2])]
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
        else:
            made.append(_Node("template", rest) if word == "template" else here)
    return tuple(made), [], ""


class _Rendering:
    def __init__(self, functions: Mapping[str, Callable[..., Any]], templates: Mapping[str, tuple[_Node, ...]]) -> None:
        self._functions, self._templates = functions, templates

    def all(self, nodes: Sequence[_Node], dot: Any) -> str:
        return "".join(self._one(node, dot) for node in nodes)

    def _one(self, node: _Node, dot: Any) -> str:
        if node.sort == "text":
            return node.text
        if node.sort == "template":
            name, _, given = node.text.partition(" ")
            if name.strip('"') not in self._templates:
                raise TemplateError(f"there is no template {name}")
            return self.all(self._templates[name.strip('"')], self._value(given, dot))
        value = self._value(node.text, dot)
        if node.sort == "range":
            return "".join(self.all(node.body, item) for item in value) if value else self.all(node.otherwise, dot)
        if node.sort == "if":
            return self.all(node.body if value else node.otherwise, dot)
        if value is ABSENT or (isinstance(value, str | int) and not isinstance(value, bool)):
            return str(value)
        raise TemplateError(f"{value!r} is no text; hint: a number needs a format, Go would write a million as 1e+06")

    def _value(self, text: str, dot: Any) -> Any:
        """A function or a method with its arguments, or one term."""
        head, *rest = _words(text)
        terms = [self._term(word, dot) for word in rest]
        called = self._functions[head] if head in self._functions else self._term(head, dot)
        if not callable(called):
            if terms:
                raise TemplateError(f"{head} takes no arguments")
            return called
        try:
            return called(*terms)
        except (TypeError, ValueError) as error:
            raise TemplateError(f"{head}: {error}") from error

    def _term(self, word: str, dot: Any) -> Any:
        if word[0] in '"`':
            return word[1:-1]
        if word[0].isdigit() or word[0] == "-":
            return float(word) if "." in word else int(word)
        if word[0] == ".":
            return _field(dot, word)
        if word in self._functions:
            return self._functions[word]()
        raise TemplateError(f"there is no function {word!r}")


def _words(text: str) -> list[str]:
    words, at = [], 0
    while text[at:].strip():
        word = _WORD.match(text, at)
        if word is None:
            raise TemplateError(f"{{{{ {text} }}}}: {text[at:].strip()[:20]!r} is not understood")
        words.append(word[1])
        at = word.end()
    if not words:
        raise TemplateError("an action without a word")
    return words


def _field(dot: Any, path: str) -> Any:
    value = dot
    for name in path.split(".")[1:]:
        if not name:
            continue
        if value is ABSENT:
            raise TemplateError(f"{path}: nothing has a field {name}")
        value = value.get(name, ABSENT) if isinstance(value, Mapping) else getattr(value, name, ABSENT)
    return value


# --- messages


@dataclass(frozen=True)
class Told:
    """One label set that fires, or that is over."""

    rule: Rule
    labels: Labels
    values: Mapping[str, float | None]
    since_ms: int
    over_ms: int | None = None

    def annotations(self) -> dict[str, str]:
        """As Grafana expands them at an evaluation. TemplateError."""
        values = {name: {"Value": math.nan if cell is None else cell} for name, cell in self.values.items()}
        data = {"Labels": {**dict(self.labels), "alertname": self.rule.title}, "Values": values}
        functions = {"externalURL": lambda: EXTERNAL_URL}
        return {name: render(text, data, functions) for name, text in self.rule.annotations.items()}


def message(told: Sequence[Told]) -> tuple[str, str]:
    """Title and text of one notification about alarms of one rule. TemplateError."""
    firing = [_alert(one) for one in told if one.over_ms is None]
    resolved = [_alert(one) for one in told if one.over_ms is not None]
    data = {"Alerts": {"Firing": firing, "Resolved": resolved}, "CommonLabels": {"alertname": told[0].rule.title}}
    return render(TITLE, data, defined=TEMPLATE), render(MESSAGE, data, defined=TEMPLATE)


def _alert(one: Told) -> dict[str, Any]:
    return {
        "Labels": {**dict(one.labels), **one.rule.labels, "alertname": one.rule.title},
        "Annotations": one.annotations(),
        "StartsAt": _Moment(one.since_ms),
        "EndsAt": _Moment(one.over_ms or one.since_ms),
    }


class _Moment:
    """Go's time.Time, as far as the template goes."""

    def __init__(self, utc_ms: int) -> None:
        self._time = datetime.fromtimestamp(utc_ms / 1000, UTC)

    @property
    def UTC(self) -> _Moment:  # noqa: N802 Go's name
        return self

    def Format(self, layout: str) -> str:  # noqa: N802 Go's name
        """Go's reference time."""
        for go, python in (("2006", "%Y"), ("01", "%m"), ("02", "%d"), ("15", "%H"), ("04", "%M")):
            layout = layout.replace(go, python)
        return self._time.strftime(layout)
