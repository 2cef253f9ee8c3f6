"""A stored page by the server's answer on the control channel: its URL, its objects, and what made them be requested. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from tandem.experiment.control import whole
from tandem.schema.url import Address, Origin, address

_MOST_OBJECTS = 5000
_SPKI = re.compile(r"[A-Za-z0-9+/]{43}=\Z")
_METHOD = re.compile(r"[A-Z]{1,16}\Z")


class PageError(ValueError):
    """The server's answer is no page; one line."""


@dataclass(frozen=True, slots=True)
class Object:
    """One to fetch. ``by``: the number of the object that made it be requested, None when not known."""

    method: str
    origin: Origin
    target: str
    status: int
    bytes: int
    by: int | None
    after_load: bool


@dataclass(frozen=True, slots=True)
class StoredPage:
    """``certificate`` (PEM) and ``spki_sha256``: of the replay's TLS, None when nothing of the page is https."""

    name: str
    url: str
    objects: tuple[Object, ...]
    certificate: str | None
    spki_sha256: str | None

    @property
    def origins(self) -> frozenset[Origin]:
        return frozenset(one.origin for one in self.objects)


def read(name: str, answer: object) -> StoredPage:
    """The page in an answer of ``GET /v1/pages/NAME``; PageError."""
    top = _object(answer, "the answer")
    url, rows, tls = top.get("url"), top.get("objects"), top.get("tls")
    if not isinstance(url, str) or not isinstance(rows, list) or not 1 <= len(rows) <= _MOST_OBJECTS:
        raise PageError("no url, or no objects, or too many")
    _address(url)
    objects = tuple(_read_object(number, row) for number, row in enumerate(rows))
    certificate = spki = None
    if tls is not None:
        certificate, spki = _object(tls, "tls").get("certificate"), _object(tls, "tls").get("spki_sha256")
        # the hash goes onto Chromium's command line
        if not isinstance(certificate, str) or not isinstance(spki, str) or not _SPKI.match(spki):
            raise PageError("tls without certificate and spki_sha256")
    elif any(one.origin.scheme == "https" for one in objects):
        raise PageError("https objects, and no certificate for them")
    return StoredPage(name, url, objects, certificate, spki)


def _read_object(number: int, answer: object) -> Object:
    row = _object(answer, f"object {number}")
    method, url, by = row.get("method"), row.get("url"), row.get("by")
    if not isinstance(method, str) or not _METHOD.match(method) or not isinstance(url, str):
        raise PageError(f"object {number}: no method or no url")
    earlier, status, size = whole(by), whole(row.get("status")), whole(row.get("bytes"))
    if by is not None and (earlier is None or earlier >= number):
        raise PageError(f"object {number}: by is no earlier object's number")
    if status is None or size is None:
        raise PageError(f"object {number}: no status, or no bytes")
    at = _address(url)
    return Object(method, at.origin, at.target, status, size, earlier, row.get("after_load") is True)


def _address(url: str) -> Address:
    try:
        return address(url)
    except ValueError as error:
        raise PageError(str(error)) from error


def _object(value: object, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise PageError(f"{what} is no object")
    return value
