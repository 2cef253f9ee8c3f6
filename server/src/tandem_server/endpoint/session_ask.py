"""The body of ``POST /v1/sessions``, read strictly (docs/reference/endpoint-api.md)."""

from __future__ import annotations

import ipaddress
import json
import re
from dataclasses import dataclass

from tandem_server.endpoint.options import Options, OptionsError, read_options
from tandem_server.endpoint.paths import PathPeer

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")
_WORD = re.compile(r"[^\x00-\x1f\x7f\\\ud800-\udfff]{1,64}\Z")
_PATHS_LIMIT = 8
_LARGEST = 10**15 - 1
_KEYS = {"run", "kind", "path", "bytes", "seconds", "budget_bytes", "paths", "options", "capture", "tls"}


class BadAsk(ValueError):  # noqa: N818  (an answer, no accident)
    """The body is no request for a session; the reason is told with status 400."""


@dataclass(frozen=True, slots=True)
class SessionAsk:
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


def read_session_ask(body: bytes) -> SessionAsk:
    """Check the body of ``POST /v1/sessions``; BadAsk names what is wrong."""
    try:
        asked = json.loads(body)
    except (ValueError, RecursionError):
        raise BadAsk("the body is not JSON") from None
    if not isinstance(asked, dict):
        raise BadAsk("the body is no JSON object")
    unknown = asked.keys() - _KEYS
    if unknown:
        raise BadAsk(f"unknown key {min(unknown)!r}")
    if not isinstance(asked.get("run"), str) or not _ID.match(asked["run"]):
        raise BadAsk("run is no id")
    if asked.get("kind") not in ("mptcp", "tcp", "any"):
        raise BadAsk("kind is neither mptcp nor tcp nor any")
    payload_bytes, seconds, budget = asked.get("bytes"), asked.get("seconds"), asked.get("budget_bytes")
    for name, count in (("bytes", payload_bytes), ("budget_bytes", budget)):
        if count is not None and (type(count) is not int or not 1 <= count <= _LARGEST):
            raise BadAsk(f"{name} is no whole number from 1 to {_LARGEST}")
    if seconds is not None and (type(seconds) not in (int, float) or not 0 < seconds < 1e5):
        raise BadAsk("seconds is no time above 0")
    if payload_bytes is not None and (seconds is not None or budget is not None):
        raise BadAsk("bytes and seconds or budget_bytes: ask for one")
    path = asked.get("path")
    if path is not None:
        _word(path, "path")
    try:
        options = read_options(asked.get("options"))
    except OptionsError as error:
        raise BadAsk(str(error)) from None
    capture = asked.get("capture", False)
    if not isinstance(capture, bool):
        raise BadAsk("capture is neither true nor false")
    tls = asked.get("tls", False)
    if not isinstance(tls, bool):
        raise BadAsk("tls is neither true nor false")
    paths = _paths(asked.get("paths"))
    return SessionAsk(asked["run"], asked["kind"], path, paths, payload_bytes, seconds, budget, options, capture, tls)


def _paths(asked: object) -> dict[str, PathPeer]:
    if asked is None:
        return {}
    if not isinstance(asked, dict) or len(asked) > _PATHS_LIMIT:
        raise BadAsk(f"paths is no object of at most {_PATHS_LIMIT} paths")
    paths = {}
    for name, peer in asked.items():
        _word(name, "a path's name")
        if not isinstance(peer, dict) or peer.keys() - {"operator", "address"}:
            raise BadAsk(f"path {name!r} is not {{operator, address}}")
        operator, address = peer.get("operator"), peer.get("address")
        if operator is not None:
            _word(operator, "operator")
        if address is not None:
            address = _address(address)
        paths[str(name)] = PathPeer(operator, address)
    return paths


def _word(value: object, what: str) -> None:
    if not isinstance(value, str) or not _WORD.match(value):
        raise BadAsk(f"{what} is no text of 1 to 64 printable characters")


def _address(value: object) -> str:
    try:
        return str(ipaddress.ip_address(value if isinstance(value, str) else ""))
    except ValueError:
        raise BadAsk(f"address {value!r} is no IP address") from None
