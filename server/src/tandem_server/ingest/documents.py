"""What a probe brings and gets besides records and traces (docs/reference/probe-api.md): manifests of runs, its queue of
campaigns, and its token by a code that is good once."""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import logging
import math
import re
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import UnionType
from typing import Any, Literal, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from tandem.schema.campaign_queue import FORMAT as CAMPAIGN_FORMAT
from tandem.schema.campaign_queue import QueueError, Report, is_id, queue_to_dict, read_report
from tandem.schema.manifest import FORMAT, Manifest, RunKind
from tandem_server.http.body import BodyReader, Busy, Unreadable, decode, read_json, receive
from tandem_server.registry import CampaignQueue, Enrolments, Network, NetworkFullError


def _kinds(hint: Any) -> tuple[type, ...]:  # noqa: ANN401  any type that the schema has
    """What JSON has for it, as Python's classes."""
    origin = get_origin(hint)
    if origin in (Union, UnionType, NotRequired):
        return tuple(dict.fromkeys(kind for one in get_args(hint) for kind in _kinds(one)))
    if origin is Literal:
        return (str,)
    return (dict,) if is_typeddict(hint) else (origin or hint,)


_HINTS = get_type_hints(Manifest, include_extras=True)
_KINDS = {key: _kinds(hint) for key, hint in _HINTS.items()}
_OPTIONAL = {key for key, hint in _HINTS.items() if get_origin(hint) is NotRequired}
_RESULT: dict[str, tuple[type, ...]] = {"bytes": (int,), "duration_s": (int, float), "goodput_bit_per_s": (int, float)}


class InvalidManifest(Unreadable):
    """The body is no manifest of this run."""


def read_manifest(text: str, run: str, probe: str) -> dict[str, Any]:
    """The manifest in ``text``, which must be of this run and of this probe; InvalidManifest names the first fault."""
    manifest = read_json(text, InvalidManifest, parse_float=_finite)
    if not isinstance(manifest, dict):
        raise InvalidManifest("no JSON object")
    if manifest.get("format") != FORMAT:
        raise InvalidManifest(f"format is {manifest.get('format')!r}, expected {FORMAT!r}")
    for key, kinds in _KINDS.items():
        if key in manifest:
            _check_kind(key, manifest[key], kinds)
        elif key not in _OPTIONAL:
            raise InvalidManifest(f"no {key!r}")
    if manifest["id"] != run:
        raise InvalidManifest(f"id is {manifest['id']!r}, the address says {run!r}")
    if manifest["probe"] != probe:
        raise InvalidManifest(f"probe is {manifest['probe']!r}, the token is {probe!r}'s")
    if manifest["kind"] not in get_args(RunKind) or manifest["pairing"] not in ("sequential", "simultaneous", "single"):
        raise InvalidManifest("kind or pairing is none of the schema's")
    if not all(isinstance(path, str) for path in manifest["paths"]):
        raise InvalidManifest("paths are not texts")
    if not all(type(count) is int and count >= 0 for count in manifest["records"].values()):
        raise InvalidManifest("records are not counts")
    if manifest["result"] is not None and manifest["kind"] != "any":  # whose result is the experiment's own
        for key, kinds in _RESULT.items():
            _check_kind(f"result.{key}", manifest["result"].get(key), kinds)
    if manifest["failure"] is not None:
        _check_kind("failure.reason", manifest["failure"].get("reason"), (str,))
        _check_kind("failure.retry", manifest["failure"].get("retry"), (bool,))
    if manifest["result"] is None and manifest["failure"] is None:
        raise InvalidManifest("neither result nor failure")
    return manifest


def _check_kind(key: str, value: object, kinds: tuple[type, ...]) -> None:
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        raise InvalidManifest(f"{key} is {json.dumps(value)[:60]}, expected {' or '.join(k.__name__ for k in kinds)}")


def _finite(number: str) -> float:
    """1e999 would be kept as Infinity, at which SQLite's JSON functions fail, for all runs at once."""
    if not math.isfinite(value := float(number)):
        raise ValueError(f"{number[:20]} is beyond any number kept here")
    return value


_REPORT_LIMIT_BYTES = 64 * 1024


class InvalidReport(Unreadable):
    """The body is no report."""


class CampaignResource:
    """The three resources."""

    def __init__(self, queue: CampaignQueue, readers: BodyReader) -> None:
        self._queue, self._readers = queue, readers

    async def listed(self, _request: Request, probe: str) -> Response:
        """``GET /v1/campaigns``."""
        return JSONResponse(queue_to_dict(await run_in_threadpool(self._queue.of_probe, probe)))

    async def file(self, request: Request, probe: str) -> Response:
        """``GET /v1/campaigns/ID``."""
        campaign = request.path_params["campaign"]
        found = await run_in_threadpool(self._queue.text, campaign, probe) if is_id(campaign) else None
        if found is None:
            return _none_such()
        return JSONResponse({"format": CAMPAIGN_FORMAT, "id": campaign, "text": found[0]})

    async def state(self, request: Request, probe: str) -> Response:
        """``PUT /v1/campaigns/ID/state``."""
        report = await self._readers.document(request, probe, _REPORT_LIMIT_BYTES, _report_in)
        campaign = request.path_params["campaign"]
        row = await run_in_threadpool(self._queue.report, campaign, probe, report) if is_id(campaign) else None
        if row is None:
            return _none_such()
        return JSONResponse({"ok": True, "state": row.state, "withdraw": row.pushed.withdraw})


def _report_in(text: str) -> Report:
    try:
        return read_report(read_json(text, InvalidReport))
    except QueueError as error:
        raise InvalidReport(str(error)) from None


def _none_such() -> Response:
    """Also for another probe's: whose it is is nobody else's business."""
    return JSONResponse({"error": "this probe has no such campaign"}, 404)


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
        Busy, TooMuch, TimeoutError."""
        async with asyncio.timeout(self._body_s):
            body = await receive(request.stream(), _LIMIT_BYTES)
        wanted = read_enrolment(decode(body, request.headers.get("content-encoding"), _LIMIT_BYTES))
        try:
            content = await run_in_threadpool(self._enrol, wanted)
        except (NetworkFullError, OSError, sqlite3.Error) as error:
            _LOG.warning("enrolment: %s", error)
            raise Busy("no probe can be enrolled now", _LATER_S, spread=False) from None
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
