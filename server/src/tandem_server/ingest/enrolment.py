"""``POST /v1/enrol`` (docs/reference/probe-api.md): a probe that was just flashed requests its token, by a code that is good once."""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
import re
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from tandem_server.http.body import Unreadable, decode, read_json, receive
from tandem_server.ingest.errors import NotNow
from tandem_server.registry import Enrolments, Network, NetworkFullError

_LOG = logging.getLogger("tandem.gateway")
_LIMIT_BYTES = 32 * 1024
_MOST_HOST_KEYS = 8
_KEEPALIVE_S = 25
"""A carrier's NAT forgets an idle UDP binding after 30 s or more (RFC 4787, 4.3, wants 120 s)."""
_LATER_S = 30
_HOST_KEY = re.compile(
    r"(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(?:256|384|521)) ([A-Za-z0-9+/]{40,2000}={0,2})(?: [ -~]{0,200})?\Z"
)


class InvalidEnrolment(Unreadable):
    """The body requests none."""


@dataclass(frozen=True, slots=True)
class Tunnel:
    """The hub as a probe learns it. ``public_key_file`` is read anew for each: the hub may be set up later."""

    network: Network
    public_key_file: Path
    endpoint: str


@dataclass(frozen=True, slots=True)
class EnrolmentRequest:
    """What a probe sent: ``ssh_host_keys`` without their comments."""

    probe: str
    code: str
    wireguard_public_key: str
    ssh_host_keys: tuple[str, ...]


class EnrolmentResource:
    """The resource. ``body_s``: within which a body must be whole. ``changed``: called after each, when the hub's peers are others."""

    def __init__(
        self,
        enrolments: Enrolments,
        tunnel: Tunnel | None,
        body_s: float,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        self._enrolments, self._tunnel, self._body_s = enrolments, tunnel, body_s
        self._changed = changed

    async def answer(self, request: Request) -> Response:
        """The token, and the tunnel. Nothing of the request is written into a log. What ``read_enrolment`` and ``Enrolments.redeem`` raise;
        NotNow, TooMuch, TimeoutError."""
        async with asyncio.timeout(self._body_s):
            body = await receive(request.stream(), _LIMIT_BYTES)
        wanted = read_enrolment(decode(body, request.headers.get("content-encoding"), _LIMIT_BYTES))
        try:
            content = await run_in_threadpool(self._enrol, wanted)
        except (NetworkFullError, OSError, sqlite3.Error) as error:
            _LOG.warning("enrolment: %s", error)
            raise NotNow("no probe can be enrolled now", _LATER_S, spread=False) from None
        return JSONResponse(content, headers={"Cache-Control": "no-store"})

    def _enrol(self, wanted: EnrolmentRequest) -> dict[str, Any]:
        # The hub's key first: a code that is used is used.
        hub = None if self._tunnel is None else read_public_key(self._tunnel.public_key_file)
        token, address = self._enrolments.redeem(
            wanted.probe,
            wanted.code,
            wanted.wireguard_public_key,
            wanted.ssh_host_keys,
            None if self._tunnel is None else self._tunnel.network,
        )
        _LOG.info("enrolled %s", wanted.probe)
        self._changed()
        content: dict[str, Any] = {"probe": wanted.probe, "token": token, "wireguard": None}
        if self._tunnel is not None and address is not None:
            content["wireguard"] = {
                "address": f"{address}/{self._tunnel.network.prefixlen}",
                "server_public_key": hub,
                "endpoint": self._tunnel.endpoint,
                "allowed_ips": [str(self._tunnel.network)],
                "keepalive_s": _KEEPALIVE_S,
            }
        return content


def read_enrolment(text: str) -> EnrolmentRequest:
    """InvalidEnrolment, with what is wrong, unless it is a whole one. Further keys are passed over."""
    content = read_json(text, InvalidEnrolment)
    if not isinstance(content, dict):
        raise InvalidEnrolment("no object")
    for name in ("probe", "code", "wireguard_public_key"):
        if not isinstance(content.get(name), str):
            raise InvalidEnrolment(f"{name} is no text")
    if not is_key(content["wireguard_public_key"]):
        raise InvalidEnrolment("wireguard_public_key is not the base64 of 32 bytes")
    keys = content.get("ssh_host_keys")
    if not isinstance(keys, list) or not 1 <= len(keys) <= _MOST_HOST_KEYS:
        raise InvalidEnrolment(f"ssh_host_keys is no list of 1 to {_MOST_HOST_KEYS}")
    return EnrolmentRequest(
        content["probe"],
        content["code"],
        content["wireguard_public_key"],
        tuple(sorted({_host_key(one) for one in keys})),
    )


def is_key(text: str) -> bool:
    """A Curve25519 public key as WireGuard writes it: 44 characters, and not zero, which agrees with everybody."""
    try:
        key = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return len(key) == 32 and any(key) and base64.b64encode(key).decode() == text


def read_public_key(file: Path) -> str:
    """The hub's key. OSError, also where there is none in the file."""
    text = file.read_text(encoding="utf-8", errors="replace").strip()
    if not is_key(text):
        raise OSError(f"{file}: no WireGuard public key; hint: wg pubkey < PRIVATE > {file}")
    return text


def _host_key(line: object) -> str:
    """``TYPE BASE64``: what stands in the base64 is of that type, too (RFC 4253, 6.6), and nothing in it can end a line."""
    found = _HOST_KEY.match(line) if isinstance(line, str) else None
    if found is None:
        raise InvalidEnrolment("a line of ssh_host_keys is none of ssh-keygen's")
    kind = found[1].encode()
    try:
        raw = base64.b64decode(found[2], validate=True)
    except binascii.Error:
        raise InvalidEnrolment("a line of ssh_host_keys is no base64") from None
    if not raw.startswith(len(kind).to_bytes(4, "big") + kind):
        raise InvalidEnrolment("a line of ssh_host_keys is of another type than it says")
    return f"{found[1]} {found[2]}"
