"""Variables and macros into a query's text, first as the front end does, then as the backend does."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import quote

from tandem_dashboards.grafana.times import Range, interval_text

_VARIABLE = re.compile(r"\$(\w+)|\[\[(\w+?)(?::(\w+))?\]\]|\$\{(\w+)(?:\.([^:^}]+))?(?::([^}]+))?\}")
_SPECIAL = re.compile(r"[\\^$*+?.()|\[\]{}/]")
_REGEX_LITERAL = re.compile(r"[=!]~\s*/((?:[^/\\\r\n]|\\.)+)/")
_BACKEND = ("__interval", "__interval_ms", "timeFilter", "interval")
"""Left alone by the front end."""


class FormatError(ValueError):
    """A variable is written in a way that is not known here."""


@dataclass(frozen=True)
class Chosen:
    """What is chosen in a variable. ``multi``: it may be several, and is formatted so even when it is one. ``everything``: All is
    chosen, and becomes this text as it is."""

    values: tuple[str, ...]
    multi: bool = False
    everything: str | None = None

    @property
    def plain(self) -> str | tuple[str, ...]:
        return self.values if self.multi else (self.values[0] if self.values else "")


def escaped(value: str) -> str:
    """Fit for a regular expression between slashes."""
    return _SPECIAL.sub(r"\\\g<0>", value)


def _regex(values: tuple[str, ...]) -> str:
    several = [escaped(value) for value in values]
    return several[0] if len(several) == 1 else "(" + "|".join(several) + ")"


_FORMATS: dict[str, Callable[[tuple[str, ...]], str]] = {
    "regex": _regex,
    "raw": ",".join,
    "csv": ",".join,
    "pipe": "|".join,
    "percentencode": lambda values: quote(
        values[0] if len(values) == 1 else "{" + ",".join(values) + "}", safe="-_.!~*'()"
    ),
    "singlequote": lambda values: ",".join("'" + value.replace("'", "\\'") + "'" for value in values),
    "doublequote": lambda values: ",".join('"' + value.replace('"', '\\"') + '"' for value in values),
    "text": " + ".join,
}


def replaced(text: str, chosen: Mapping[str, Chosen], span: Range) -> str:
    """``text`` with variables, ``$__from`` and ``$__to`` in it; what is not known stays as it stands."""

    def put(found: re.Match[str]) -> str:
        name = found[1] or found[2] or found[4]
        form = found[3] or found[6]
        if name in ("__from", "__to"):
            return str(span.from_ms if name == "__from" else span.to_ms)
        if name in _BACKEND or name not in chosen:
            return found[0]
        value = chosen[name]
        if value.everything is not None and form not in ("text", "queryparam"):
            return value.everything
        if form == "queryparam":
            return "&".join(f"var-{name}={quote(v, safe='')}" for v in value.values)
        if form is None:
            return _as_influxdb_does(name, value, text)
        if form not in _FORMATS:
            raise FormatError(f"${{{name}:{form}}}: the format {form!r} is not known; known: {', '.join(_FORMATS)}")
        return _FORMATS[form](value.values)

    return _VARIABLE.sub(put, text)


def expanded(text: str, chosen: Mapping[str, Chosen], span: Range, window_ms: int) -> str:
    """The query as it goes to the database."""
    query = replaced(text, chosen, span)
    query = query.replace("$timeFilter", span.influxql).replace("$interval", interval_text(window_ms))
    return query.replace("$__interval_ms", str(window_ms)).replace("$__interval", interval_text(window_ms))


def _as_influxdb_does(name: str, chosen: Chosen, text: str) -> str:
    """A variable without a format: interpolateQueryExpr. A text that begins with a number is not escaped."""
    value = chosen.plain
    if isinstance(value, str):
        if re.match(r"\s*[-+]?(\d|\.\d)", value):
            return value
        within = any(re.search(rf"\${name}(?!\w)", literal) for literal in _REGEX_LITERAL.findall(text))
        return escaped(value) if within else value
    return "(" + "|".join(escaped(v) for v in value) + ")"
