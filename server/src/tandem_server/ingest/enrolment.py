"""``POST /v1/enrol`` (docs/reference/probe-api.md): a probe that was just flashed asks for its token, by a code that is good once."""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import logging
import re
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from tandem_server.ingest.body import Unreadable, decode, receive
from tandem_server.ingest.lines import TooMuch
from tandem_server.ingest.meter import NOBODY_READS
from tandem_server.registry import BadCode, Enrolments, KeyTaken, Network, NetworkFullError

_LOG = logging.getLogger("tandem.gateway")
_LIMIT_BYTES = 32 * 1024
_MOST_HOST_KEYS = 8
_KEEPALIVE_S = 25
"""A carrier's NAT forgets an idle UDP binding after 30 s or more (RFC 4787, 4.3, wants 120 s)."""
_LATER_S = 30
_HOST_KEY = re.compile(
    r"(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(?:256|384|521)) ([A-Za-z0-9+/]{40,2000}={0,2})(?: [ -~]{0,200})?\Z"
)


class NoEnrolment(ValueError):  # noqa: N818  (an answer, no accident)
    """The body does not ask for one; the reason is told with status 400."""


@dataclass(frozen=True, slots=True)
class Tunnel:
    """The hub as a probe is told it. ``public_key_file`` is read anew for each: the hub may be set up later."""

    network: Network
    public_key_file: Path
    endpoint: str


@dataclass(frozen=True, slots=True)
class Asked:
    """What a probe told: ``ssh_host_keys`` without their comments."""

    probe: str
    code: str
    wireguard_public_key: str
    ssh_host_keys: tuple[str, ...]


class Enrolling:
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
        """Every outcome; nothing that was asked with is written into a log."""
        try:
            async with asyncio.timeout(self._body_s):
                body = await receive(request.stream(), _LIMIT_BYTES)
            asked = read_asked(decode(body, request.headers.get("content-encoding"), _LIMIT_BYTES))
            return JSONResponse(await run_in_threadpool(self._enrol, asked), headers={"Cache-Control": "no-store"})
        except TooMuch as error:
            return JSONResponse({"error": str(error)}, 413)
        except (Unreadable, NoEnrolment) as error:
            return JSONResponse({"error": str(error)}, 400)
        except TimeoutError:
            return JSONResponse({"error": f"the body did not come within {self._body_s:g} s"}, 408)
        except BadCode as error:
            if error.told is not None:
                _LOG.warning("enrolment: %s", error.told)
            # One answer for all of them. The door counts it, as it counts wrong tokens.
            return JSONResponse({"error": "no good code"}, 401, {"WWW-Authenticate": "Invitation"})
        except KeyTaken:
            return JSONResponse({"error": "another probe has this WireGuard key; make a new one"}, 409)
        except (NetworkFullError, OSError, sqlite3.Error) as error:
            _LOG.warning("enrolment: %s", error)
            return JSONResponse({"error": "no probe can be enrolled now"}, 503, {"Retry-After": str(_LATER_S)})
        except ClientDisconnect:
            return Response(status_code=NOBODY_READS)

    def _enrol(self, asked: Asked) -> dict[str, Any]:
        # The hub's key first: a code that is used is used.
        hub = None if self._tunnel is None else read_public_key(self._tunnel.public_key_file)
        token, address = self._enrolments.redeem(
            asked.probe,
            asked.code,
            asked.wireguard_public_key,
            asked.ssh_host_keys,
            None if self._tunnel is None else self._tunnel.network,
        )
        _LOG.info("enrolled %s", asked.probe)
        self._changed()
        told: dict[str, Any] = {"probe": asked.probe, "token": token, "wireguard": None}
        if self._tunnel is not None and address is not None:
            told["wireguard"] = {
                "address": f"{address}/{self._tunnel.network.prefixlen}",
                "server_public_key": hub,
                "endpoint": self._tunnel.endpoint,
                "allowed_ips": [str(self._tunnel.network)],
                "keepalive_s": _KEEPALIVE_S,
            }
        return told


def read_asked(text: str) -> Asked:
    """NoEnrolment, with what is wrong, unless it is a whole one. Further keys are passed over."""
    try:
        content = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise NoEnrolment(f"not JSON: {error}") from None
    if not isinstance(content, dict):
        raise NoEnrolment("no object")
    for name in ("probe", "code", "wireguard_public_key"):
        if not isinstance(content.get(name), str):
            raise NoEnrolment(f"{name} is no text")
    if not is_key(content["wireguard_public_key"]):
        raise NoEnrolment("wireguard_public_key is not the base64 of 32 bytes")
    keys = content.get("ssh_host_keys")
    if not isinstance(keys, list) or not 1 <= len(keys) <= _MOST_HOST_KEYS:
        raise NoEnrolment(f"ssh_host_keys is no list of 1 to {_MOST_HOST_KEYS}")
    return Asked(
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
        raise NoEnrolment("a line of ssh_host_keys is none of ssh-keygen's")
    kind = found[1].encode()
    try:
        raw = base64.b64decode(found[2], validate=True)
    except binascii.Error:
        raise NoEnrolment("a line of ssh_host_keys is no base64") from None
    if not raw.startswith(len(kind).to_bytes(4, "big") + kind):
        raise NoEnrolment("a line of ssh_host_keys is of another type than it says")
    return f"{found[1]} {found[2]}"


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")
