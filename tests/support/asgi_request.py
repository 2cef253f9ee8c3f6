"""One request straight to an ASGI application."""

import asyncio
import json
from collections.abc import Iterable
from typing import Any


async def asked(
    app: Any,
    method: str,
    path: str,
    chunks: Iterable[Any] = (),
    headers: Iterable[tuple[bytes, bytes]] = (),
    client: str = "x",
) -> tuple[int, dict[bytes, bytes], Any]:
    """Status, headers and decoded JSON. ``chunks`` of the body may be awaited."""
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "https", "path": path,
        "raw_path": path.encode(), "query_string": b"", "root_path": "", "server": ("x", 1), "client": (client, 1),
        "headers": list(headers),
    }  # fmt: skip
    sent: list[Any] = []
    left = list(chunks)

    async def receive() -> dict[str, Any]:
        body = left.pop(0) if left else b""
        body = await body if asyncio.iscoroutine(body) else body
        return {"type": "http.request", "body": body, "more_body": bool(left)}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    body = b"".join(message.get("body", b"") for message in sent[1:])
    return sent[0]["status"], dict(sent[0]["headers"]), json.loads(body)


def bearer(token: str) -> tuple[bytes, bytes]:
    return b"authorization", f"Bearer {token}".encode()
