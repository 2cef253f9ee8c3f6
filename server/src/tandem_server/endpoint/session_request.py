"""The body of ``POST /v1/sessions``, read strictly (docs/reference/endpoint-api.md)."""

from __future__ import annotations

import ipaddress
import json
import re
from dataclasses import dataclass

from tandem_server.endpoint.options import Options, OptionsError, read_options
from tandem_server.endpoint.paths import PathPeer
from tandem_server.http.body import Unreadable

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")
_WORD = re.compile(r"[^\x00-\x1f\x7f\\\ud800-\udfff]{1,64}\Z")
_PATHS_LIMIT = 8
_LARGEST = 10**15 - 1
_KEYS = {"run", "kind", "path", "bytes", "seconds", "budget_bytes", "paths", "options", "capture", "tls"}


class InvalidRequest(Unreadable):
    """The body is no request for a session."""


@dataclass(frozen=True, slots=True)
class SessionRequest:
    """A request for a session, checked. At most one of ``payload_bytes`` and ``seconds`` is set; ``budget_bytes`` never with
    ``payload_bytes``."""

    run: str
    kind: str
    path: str | None
    paths: dict[str, PathPeer]
    payload_bytes: int | None = None
    seconds: float | None = None
    budget_bytes: int | None = None
    options: Options = Options()  # noqa: RUF009  (frozen)
    capture: bool = False
    tls: bool = False


def read_session_request(body: bytes) -> SessionRequest:
    """Check the body of ``POST /v1/sessions``; InvalidRequest names what is wrong."""
    try:
        wanted = json.loads(body)
    except (ValueError, RecursionError):
        raise InvalidRequest("the body is not JSON") from None
    if not isinstance(wanted, dict):
        raise InvalidRequest("the body is no JSON object")
    unknown = wanted.keys() - _KEYS
    if unknown:
        raise InvalidRequest(f"unknown key {min(unknown)!r}")
    if not isinstance(wanted.get("run"), str) or not _ID.match(wanted["run"]):
        raise InvalidRequest("run is no id")
    if wanted.get("kind") not in ("mptcp", "tcp", "any"):
        raise InvalidRequest("kind is neither mptcp nor tcp nor any")
    payload_bytes, seconds, budget = wanted.get("bytes"), wanted.get("seconds"), wanted.get("budget_bytes")
    for name, count in (("bytes", payload_bytes), ("budget_bytes", budget)):
        if count is not None and (type(count) is not int or not 1 <= count <= _LARGEST):
            raise InvalidRequest(f"{name} is no whole number from 1 to {_LARGEST}")
    if seconds is not None and (type(seconds) not in (int, float) or not 0 < seconds < 1e5):
        raise InvalidRequest("seconds is no time above 0")
    if payload_bytes is not None and (seconds is not None or budget is not None):
        raise InvalidRequest("bytes and seconds or budget_bytes: ask for one")
    path = wanted.get("path")
    if path is not None:
        _word(path, "path")
    try:
        options = read_options(wanted.get("options"))
    except OptionsError as error:
        raise InvalidRequest(str(error)) from None
    capture = wanted.get("capture", False)
    if not isinstance(capture, bool):
        raise InvalidRequest("capture is neither true nor false")
    tls = wanted.get("tls", False)
    if not isinstance(tls, bool):
        raise InvalidRequest("tls is neither true nor false")
    paths = _paths(wanted.get("paths"))
    return SessionRequest(
        wanted["run"], wanted["kind"], path, paths, payload_bytes, seconds, budget, options, capture, tls
    )


def _paths(wanted: object) -> dict[str, PathPeer]:
    if wanted is None:
        return {}
    if not isinstance(wanted, dict) or len(wanted) > _PATHS_LIMIT:
        raise InvalidRequest(f"paths is no object of at most {_PATHS_LIMIT} paths")
    paths = {}
    for name, peer in wanted.items():
        _word(name, "a path's name")
        if not isinstance(peer, dict) or peer.keys() - {"operator", "address"}:
            raise InvalidRequest(f"path {name!r} is not {{operator, address}}")
        operator, address = peer.get("operator"), peer.get("address")
        if operator is not None:
            _word(operator, "operator")
        if address is not None:
            address = _address(address)
        paths[str(name)] = PathPeer(operator, address)
    return paths


def _word(value: object, what: str) -> None:
    if not isinstance(value, str) or not _WORD.match(value):
        raise InvalidRequest(f"{what} is no text of 1 to 64 printable characters")


def _address(value: object) -> str:
    try:
        return str(ipaddress.ip_address(value if isinstance(value, str) else ""))
    except ValueError:
        raise InvalidRequest(f"address {value!r} is no IP address") from None
