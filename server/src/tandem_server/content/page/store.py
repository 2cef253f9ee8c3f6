"""Stored pages in the content folder: written whole, opened and checked, bodies read. ``NAME/page.json``, ``NAME/bodies/SHA256``, and
``NAME/.tls.pem``, which no request can name."""

from __future__ import annotations

import base64
import gzip
import hashlib
import os
import re
import shutil
import ssl
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tandem_server.content.page.index import (
    LONGEST_BODY_BYTES,
    Page,
    PageError,
    Stored,
    address,
    dump,
    is_header,
    parse,
)
from tandem_server.content.page.matching import Matcher

_CERTIFICATE_DAYS = 3650
INDEX, BODIES, TLS = "page.json", "bodies", ".tls.pem"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")
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


def replace_page(target: Path, making: Path) -> None:
    """Put the finished folder ``making`` where ``target`` is or will be. OSError."""
    if target.exists():
        shutil.rmtree(target)
    making.rename(target)


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
        return sorted(f.name for f in self._folder.iterdir() if NAME.match(f.name) and (f / INDEX).is_file())

    def open(self, name: str) -> Opened | None:
        """The page; None when there is none of this name. PageError, OSError."""
        folder = self._folder / name
        if not NAME.match(name) or folder.is_symlink() or not (folder / INDEX).is_file():
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
    except PageError:
        return False
    return True
