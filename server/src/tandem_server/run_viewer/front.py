"""Before the pages: who may ask in which way, and the headers of every answer."""

from __future__ import annotations

import ipaddress

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_STRICT = {
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
NOTHING = "default-src 'none'; sandbox; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
"""Content-Security-Policy of all but pages."""


def page_policy(script_hash: str) -> str:
    """Of a page: its own script, by its hash, its own styles, and nothing from anywhere."""
    return (
        f"default-src 'none'; script-src '{script_hash}'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none';"
        " frame-ancestors 'none'"
    )


class Front:
    """GET and HEAD only. Without a proxy in front (``any_host`` False) only names of loopback are answered: a page elsewhere that leads
    its own name to this address (DNS rebinding) reads nothing."""

    def __init__(self, app: ASGIApp, *, any_host: bool) -> None:
        self._app, self._any_host = app, any_host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""

        async def answered(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _STRICT.items():
                    headers[name] = value
                headers.setdefault("content-security-policy", NOTHING)
            await send(message)

        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif scope["method"] not in ("GET", "HEAD"):
            refused = PlainTextResponse("here is nothing but to read: GET and HEAD\n", 405, {"Allow": "GET, HEAD"})
            await refused(scope, receive, answered)
        elif not self._any_host and not is_loopback(Headers(scope=scope).get("host", "")):
            refused = PlainTextResponse("ask by localhost, or set [pages] behind_proxy\n", 421)
            await refused(scope, receive, answered)
        else:
            await self._app(scope, receive, answered)


def is_loopback(host: str) -> bool:
    """Whether a Host header (with or without a port) is a name of this machine for itself."""
    name = host.rpartition("]")[0].removeprefix("[") if host.startswith("[") else host.partition(":")[0]
    if name.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
