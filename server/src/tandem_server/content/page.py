"""Stored pages for the experiment ``pageload`` (docs/reference/pages.md): the index of what was requested and answered, which stored object
answers a request, and the pages in the content folder, written whole, opened and checked.

``NAME/page.json``, ``NAME/bodies/SHA256``, and ``NAME/.tls.pem``, which no request can name.

Pages ask for other queries each time (cache busters, random numbers), so a query that was never stored is answered by the stored one of
the same method, host and path that has the most parameters with equal values, then the most of equal names, then the longest common
beginning, then the first. Another path is a miss.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import os
import re
import ssl
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tandem.schema.manifest import PLAIN_NAME
from tandem.schema.url import PORTS, Address, Origin, address

FORMAT = "tandem-page/1"
MOST_OBJECTS = 5000
LONGEST_INDEX_BYTES = 16 << 20
LONGEST_BODY_BYTES = 64 << 20
_SHA256 = re.compile(r"[0-9a-f]{64}\Z")
_METHOD = re.compile(r"[A-Z]{1,16}\Z")
_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,128}\Z")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]{0,16384}\Z")
T = TypeVar("T")


class PageError(ValueError):
    """The index is none; one line that says where."""


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
    if _address(url, "url").target != address(objects[0].url).target:
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
    _address(url, where)
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


def _address(url: str, where: str) -> Address:
    try:
        return address(url)
    except ValueError as error:
        raise PageError(f"{where}: {error}") from error


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


@dataclass(frozen=True, slots=True)
class Match:
    """``number`` of the object; ``exact``: its query is the requested one."""

    number: int
    exact: bool


class Matcher:
    """For one page."""

    def __init__(self, page: Page) -> None:
        self._found: dict[tuple[str, str, str, int, str], dict[str | None, int]] = {}
        for number, one in enumerate(page.objects):
            at = address(one.url)
            key = (one.method, at.origin.scheme, at.origin.host, at.origin.port, at.path)
            # A URL that was requested several times is answered as it was first.
            self._found.setdefault(key, {}).setdefault(at.query, number)

    def find(self, method: str, scheme: str, authority: str, target: str) -> Match | None:
        """The object for a request as it came; None: a miss. HEAD is answered as GET."""
        try:
            parts = urlsplit(f"//{authority}")
            port = parts.port or PORTS[scheme]
        except ValueError:
            return None
        path, mark, query = target.partition("?")
        key = ("GET" if method == "HEAD" else method, scheme, parts.hostname or "", port, path)
        there = self._found.get(key)
        if there is None:
            return None
        requested = query if mark else None
        if requested in there:
            return Match(there[requested], True)
        return Match(_nearest(there, requested or ""), False)


def _nearest(there: Mapping[str | None, int], requested: str) -> int:
    wanted = _parameters(requested)
    names = {name for name, _ in wanted}

    def likeness(item: tuple[str | None, int]) -> tuple[int, int, int, int]:
        query = item[0] or ""
        has = _parameters(query)
        alike = len({name for name, _ in has} & names)
        begun = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(query, requested, strict=False)))
        return len(has & wanted), alike, begun, -item[1]

    return max(there.items(), key=likeness)[1]


def _parameters(query: str) -> set[tuple[str, str]]:
    pairs = (part.partition("=") for part in query.split("&") if part)
    return {(name, value) for name, _, value in pairs}


_CERTIFICATE_DAYS = 3650
INDEX, BODIES, TLS = "page.json", "bodies", ".tls.pem"
_OF_THE_CONNECTION = (
    "connection", "keep-alive", "proxy-connection", "transfer-encoding", "content-length", "upgrade", "trailer", "te",
)  # fmt: skip
_ELSEWHERE = ("alt-svc", "strict-transport-security", "nel", "report-to", "reporting-endpoints", "public-key-pins")
"""Of other ways to the site, and of reports that a browser would send later."""


@dataclass(frozen=True, slots=True)
class Captured:
    """One exchange before it is stored: ``body`` decoded, headers as they came. ``by``, ``after_load``, ``wire_bytes``: as ``Stored``."""

    method: str
    url: str
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    wire_bytes: int | None = None
    by: int | None = None
    after_load: bool = False


def write(into: Path, objects: Sequence[Captured], made: Mapping[str, Any], times_ms: Mapping[str, float]) -> Page:
    """Fill the folder ``into``, which exists. Bodies that came encoded are stored with gzip, for a browser shows them only decoded.
    PageError for what no page is; OSError."""
    (into / BODIES).mkdir()
    stored = []
    for one in objects:
        if len(one.body) > LONGEST_BODY_BYTES:
            raise PageError(f"{one.url[:80]!r}: {len(one.body)} bytes; a body may have {LONGEST_BODY_BYTES}")
        headers, body = _for_replay(one)
        digest = hashlib.sha256(body).hexdigest() if body else None
        if digest is not None:
            (into / BODIES / digest).write_bytes(body)
        stored.append(
            Stored(one.method, one.url, one.status, headers, digest, len(body), one.wire_bytes, one.by, one.after_load)
        )
    if not stored:
        raise PageError("no object")
    page = Page(stored[0].url, tuple(stored), dict(made), dict(times_ms))
    text = dump(page)
    parse(text)  # what is written can be read
    if any(origin.scheme == "https" for origin in page.origins):
        with os.fdopen(os.open(into / TLS, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(make_certificate())
    with (into / INDEX).open("w", encoding="utf-8") as index:
        index.write(text)
        index.flush()
        os.fsync(index.fileno())
    return page


def _for_replay(one: Captured) -> tuple[tuple[tuple[str, str], ...], bytes]:
    kept, encoded = [], False
    for name, value in one.headers:
        low = name.lower()
        if low == "content-encoding":
            encoded = encoded or value.strip().lower() not in ("", "identity")
        elif low not in _OF_THE_CONNECTION and low not in _ELSEWHERE and is_header(name, value):
            kept.append((name, value))
    if encoded and one.body:
        # a fixed time in the gzip head: the same page is the same files
        return (*kept, ("Content-Encoding", "gzip")), gzip.compress(one.body, 6, mtime=0)
    return tuple(kept), one.body


@dataclass(frozen=True, slots=True)
class Opened:
    """A page ready to be replayed. ``tls``: None when nothing of it is https. ``public``: what the browser must trust, likewise."""

    page: Page
    matcher: Matcher
    folder: Path
    tls: ssl.SSLContext | None
    public: Mapping[str, str] | None

    def body(self, number: int) -> bytes:
        """The object's, whole. PageError when the file is not what the index says; OSError."""
        one = self.page.objects[number]
        if one.body is None:
            return b""
        descriptor = os.open(self.folder / BODIES / one.body, os.O_RDONLY | os.O_NOFOLLOW)
        with os.fdopen(descriptor, "rb") as file:
            body = file.read(one.bytes + 1)
        if len(body) != one.bytes:
            raise PageError(f"{self.folder.name}: object {number}: {len(body)} bytes or more, {one.bytes} expected")
        return body


class PageStore:
    """The pages in ``folder``, which need not exist. From any thread. The last one used is kept."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._last: tuple[str, tuple[int, int, int], Opened] | None = None

    def names(self) -> list[str]:
        """Of the pages there."""
        if not self._folder.is_dir():
            return []
        return sorted(f.name for f in self._folder.iterdir() if PLAIN_NAME.match(f.name) and (f / INDEX).is_file())

    def open(self, name: str) -> Opened | None:
        """The page; None when there is none of this name. PageError, OSError."""
        folder = self._folder / name
        if not PLAIN_NAME.match(name) or folder.is_symlink() or not (folder / INDEX).is_file():
            return None
        status = (folder / INDEX).stat()
        stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
        with self._lock:
            if self._last is None or self._last[:2] != (name, stamp):
                self._last = (name, stamp, _open(folder))
            return self._last[2]


def _open(folder: Path) -> Opened:
    page = parse((folder / INDEX).read_bytes())
    if not any(origin.scheme == "https" for origin in page.origins):
        return Opened(page, Matcher(page), folder, None, None)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(folder / TLS)
        public = _public((folder / TLS).read_bytes())
    except (ssl.SSLError, ValueError) as error:
        raise PageError(f"{folder.name}: {TLS}: {error}; hint: make the page anew") from error
    return Opened(page, Matcher(page), folder, context, public)


def make_certificate() -> bytes:
    """Key and self-signed certificate, PEM, under which the page's https origins are replayed: trusted by nobody but the experiment's
    browser. On P-256, as most sites' are."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Tandem stored page")])
    start = datetime.now(UTC) - timedelta(hours=1)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + timedelta(days=_CERTIFICATE_DAYS))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("page.tandem.invalid")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return private + made.public_bytes(serialization.Encoding.PEM)


def _public(pem: bytes) -> dict[str, str]:
    """What a client needs to trust it: ``certificate`` (PEM) and ``spki_sha256`` (base64, as Chromium takes it). ValueError."""
    certificate = x509.load_pem_x509_certificate(pem)
    spki = certificate.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return {
        "certificate": certificate.public_bytes(serialization.Encoding.PEM).decode("ascii"),
        "spki_sha256": base64.b64encode(hashlib.sha256(spki).digest()).decode("ascii"),
    }


def verify(opened: Opened) -> list[str]:
    """What is wrong with the bodies, one line each."""
    wrong = []
    for number, one in enumerate(opened.page.objects):
        try:
            body = opened.body(number)
        except (OSError, PageError) as error:
            wrong.append(f"object {number}: {error}")
            continue
        if one.body is not None and hashlib.sha256(body).hexdigest() != one.body:
            wrong.append(f"object {number}: {one.body} has another sha256")
    return wrong


def in_order(objects: Sequence[Captured]) -> list[Captured]:
    """With the document first, and every ``by`` before its object: what does not keep this order is given as not known."""
    return [
        replace(one, by=one.by if one.by is not None and one.by < number else None)
        for number, one in enumerate(objects)
    ]


def usable(url: str) -> bool:
    """Whether the index can have this URL."""
    try:
        address(url)
    except ValueError:
        return False
    return True
