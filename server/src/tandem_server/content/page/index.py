"""A stored page's index, ``page.json`` (docs/reference/pages.md): what was requested and answered, and what made the browser request it.
Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import urlsplit

FORMAT = "tandem-page/1"
MOST_OBJECTS = 5000
LONGEST_INDEX_BYTES = 16 << 20
LONGEST_BODY_BYTES = 64 << 20
_LONGEST_URL = 16384
_SHA256 = re.compile(r"[0-9a-f]{64}\Z")
_METHOD = re.compile(r"[A-Z]{1,16}\Z")
_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,128}\Z")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]{0,16384}\Z")
_PORTS = {"http": 80, "https": 443}
T = TypeVar("T")


class PageError(ValueError):
    """The index is none; one line that says where."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Scheme (http or https), host in lower case, port."""

    scheme: str
    host: str
    port: int

    @property
    def authority(self) -> str:
        """As in the header Host."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Address:
    """A URL taken apart; ``path`` and ``query`` as a request's target has them, None without a query."""

    origin: Origin
    path: str
    query: str | None

    @property
    def target(self) -> str:
        """As in a request."""
        return self.path if self.query is None else f"{self.path}?{self.query}"


def address(url: str) -> Address:
    """Take ``url`` apart; PageError unless it is http or https with a host and only characters that a request may have."""
    if len(url) > _LONGEST_URL or not url.isascii() or not url.isprintable() or " " in url:
        raise PageError(f"{url[:80]!r} is no URL of printable ASCII")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise PageError(f"{url[:80]!r}: {error}") from error
    if parts.scheme not in _PORTS or not parts.hostname:
        raise PageError(f"{url[:80]!r} is not http or https with a host")
    # urlsplit cannot tell "?" alone from no query; a request can
    has_query = "?" in url.partition("#")[0]
    origin = Origin(parts.scheme, parts.hostname, port if port is not None else _PORTS[parts.scheme])
    return Address(origin, parts.path or "/", parts.query if has_query else None)


@dataclass(frozen=True, slots=True)
class Stored:
    """One exchange. ``body``: sha256 of the file in ``bodies/``, None for an empty one; ``bytes``: of it, as replayed. ``wire_bytes``: of
    the body as it came when recorded, None where that is not known. ``by``: the number of the object that led to its request, None
    for the document and where it is not known. ``after_load``: requested only after the page's load event."""

    method: str
    url: str
    status: int
    headers: tuple[tuple[str, str], ...]
    body: str | None
    bytes: int
    wire_bytes: int | None = None
    by: int | None = None
    after_load: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    """``objects``: the document first. ``made``: how, by what, when; ``times_ms``: as recorded (``dom_content_loaded``, ``load``), where
    known."""

    url: str
    objects: tuple[Stored, ...]
    made: Mapping[str, Any] = field(default_factory=dict)
    times_ms: Mapping[str, float] = field(default_factory=dict)

    @property
    def origins(self) -> tuple[Origin, ...]:
        """Every origin, the document's first."""
        return tuple(dict.fromkeys(address(one.url).origin for one in self.objects))


def dump(page: Page) -> str:
    """The text of ``page.json``."""
    rows = []
    for one in page.objects:
        row: dict[str, Any] = {"method": one.method, "url": one.url, "status": one.status}
        row |= {"headers": [list(pair) for pair in one.headers], "body": one.body, "bytes": one.bytes}
        row |= {"wire_bytes": one.wire_bytes, "by": one.by, "after_load": one.after_load}
        rows.append(json.dumps(row, separators=(",", ":")))
    head = {"format": FORMAT, "url": page.url, "made": dict(page.made), "times_ms": dict(page.times_ms)}
    return json.dumps(head)[:-1] + ', "objects": [\n' + ",\n".join(rows) + "\n]}\n"


def parse(text: str | bytes) -> Page:
    """The page of a ``page.json``; PageError says what is wrong and where."""
    if len(text) > LONGEST_INDEX_BYTES:
        raise PageError(f"longer than {LONGEST_INDEX_BYTES} bytes")
    try:
        content = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise PageError(f"no JSON: {error}") from error
    top = _of(content, dict, "the index")
    if top.get("format") != FORMAT:
        raise PageError(f"format {str(top.get('format'))[:40]!r}, not {FORMAT!r}")
    rows = _of(top.get("objects"), list, "objects")
    if not 1 <= len(rows) <= MOST_OBJECTS:
        raise PageError(f"{len(rows)} objects; 1 to {MOST_OBJECTS} may be")
    objects = tuple(_stored(number, row) for number, row in enumerate(rows))
    url = _of(top.get("url"), str, "url")
    if address(url).target != address(objects[0].url).target:
        raise PageError("the first object is not the document of url")
    return Page(url, objects, _of(top.get("made", {}), dict, "made"), _times(top.get("times_ms", {})))


def _times(content: object) -> dict[str, float]:
    times = _of(content, dict, "times_ms")
    for value in times.values():
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e9:
            raise PageError(f"times_ms: {str(value)[:40]} is no time")
    return times


def _stored(number: int, content: object) -> Stored:
    where = f"object {number}"
    row: dict[str, Any] = _of(content, dict, where)
    method, url = _of(row.get("method"), str, f"{where}: method"), _of(row.get("url"), str, f"{where}: url")
    if not _METHOD.match(method):
        raise PageError(f"{where}: method {method[:20]!r}")
    try:
        address(url)
    except PageError as error:
        raise PageError(f"{where}: {error}") from error
    status = _whole(row.get("status"), f"{where}: status", 100, 599)
    size = _whole(row.get("bytes"), f"{where}: bytes", 0, LONGEST_BODY_BYTES)
    body = row.get("body")
    if body is not None and (not isinstance(body, str) or not _SHA256.match(body)):
        raise PageError(f"{where}: body is no sha256")
    if (body is None) != (size == 0):
        raise PageError(f"{where}: {size} bytes and {'no' if body is None else 'a'} body")
    wire, by, late = row.get("wire_bytes"), row.get("by"), row.get("after_load", False)
    if wire is not None:
        wire = _whole(wire, f"{where}: wire_bytes", 0, 1 << 40)
    if by is not None:
        by = _whole(by, f"{where}: by", 0, number - 1)
    if not isinstance(late, bool):
        raise PageError(f"{where}: after_load is neither true nor false")
    return Stored(method, url, status, _headers(row.get("headers"), where), body, size, wire, by, late)


def _headers(content: object, where: str) -> tuple[tuple[str, str], ...]:
    found = []
    for pair in _of(content, list, f"{where}: headers"):
        if not isinstance(pair, list) or len(pair) != 2 or not is_header(pair[0], pair[1]):
            raise PageError(f"{where}: a header that is not [NAME, VALUE]: {str(pair)[:60]}")
        found.append((pair[0], pair[1]))
    if len(found) > 200:
        raise PageError(f"{where}: {len(found)} headers")
    return tuple(found)


def is_header(name: object, value: object) -> bool:
    """Whether this may stand in an answer's head."""
    return isinstance(name, str) and isinstance(value, str) and bool(_NAME.match(name) and _VALUE.match(value))


def _of(value: object, kind: type[T], what: str) -> T:
    if not isinstance(value, kind):
        raise PageError(f"{what}: {type(value).__name__}, {kind.__name__} expected")
    return value


def _whole(value: object, what: str, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise PageError(f"{what}: {str(value)[:40]} is no whole number from {least} to {most}")
    return value


def _refuse(constant: str) -> Any:  # noqa: ANN401  never returns
    raise ValueError(f"{constant} is no JSON")


def public(page: Page) -> dict[str, Any]:
    """The page as the control channel tells it: everything but headers and bodies."""
    rows: Sequence[dict[str, Any]] = [
        {
            "method": one.method,
            "url": one.url,
            "status": one.status,
            "bytes": one.bytes,
            "by": one.by,
            "after_load": one.after_load,
        }
        for one in page.objects
    ]
    origins = [{"scheme": o.scheme, "host": o.host, "port": o.port} for o in page.origins]
    return {
        "url": page.url,
        "origins": origins,
        "objects": rows,
        "made": dict(page.made),
        "times_ms": dict(page.times_ms),
    }
