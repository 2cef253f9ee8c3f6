"""Stored pages from HTTP archives (HAR 1.2, as browsers export them with content). Pure.

What a HAR has not: bodies as they came (only decoded), and in Firefox's the initiators. What it has wrong is left out with its reason, not
guessed at.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tandem_server.content.page.index import MOST_OBJECTS
from tandem_server.content.page.store import Captured, usable

LONGEST_BYTES = 512 << 20


class HarError(ValueError):
    """No page can be made of it; one line."""


@dataclass(frozen=True, slots=True)
class Imported:
    """``left_out``: entries that were not taken, one line each. ``browser``: who wrote the archive, as it says."""

    objects: list[Captured]
    times_ms: dict[str, float]
    left_out: list[str]
    browser: str


def read(raw: bytes) -> Imported:
    """The first page of the archive; HarError."""
    if len(raw) > LONGEST_BYTES:
        raise HarError(f"longer than {LONGEST_BYTES} bytes")
    try:
        top = json.loads(raw.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise HarError(f"no JSON: {error}") from error
    log = json_object(json_object(top).get("log"))
    entries = log.get("entries")
    if not isinstance(entries, list) or not entries:
        raise HarError("no log.entries")
    page = json_object(next(iter(_list(log.get("pages"))), {}))
    entries = [json_object(e) for e in entries]
    if page.get("id") is not None:
        # a HAR may hold several pages one after the other
        entries = [e for e in entries if e.get("pageref") in (page["id"], None)] or entries
    times_ms = _times(json_object(page.get("pageTimings")))
    begun, load_ms = _when(page.get("startedDateTime")), times_ms.get("load")
    objects: list[Captured] = []
    left_out: list[str] = []
    numbers: dict[str, int] = {}
    for place, entry in enumerate(entries):
        try:
            late = _late(entry, begun, load_ms) and bool(objects)
            one = _captured(entry, numbers, late=late)
        except HarError as error:
            left_out.append(f"entry {place}: {error}")
            continue
        if len(objects) == MOST_OBJECTS:
            left_out.append(f"entry {place} and what follows: more than {MOST_OBJECTS}")
            break
        if not objects and not 200 <= one.status < 400:
            raise HarError(f"its document was answered {one.status}")
        numbers.setdefault(one.url, len(objects))
        objects.append(one)
    if not objects:
        raise HarError("nothing in it can be replayed: " + "; ".join(left_out[:3]))
    creator = json_object(log.get("browser")) or json_object(log.get("creator"))
    browser = " ".join(str(creator.get(k, ""))[:40] for k in ("name", "version")).strip()
    return Imported(objects, times_ms, left_out, browser)


def _captured(entry: Mapping[str, Any], numbers: Mapping[str, int], *, late: bool) -> Captured:
    request, response = json_object(entry.get("request")), json_object(entry.get("response"))
    method, url, status = request.get("method"), request.get("url"), response.get("status")
    if not isinstance(url, str) or not usable(url):
        raise HarError(f"{str(url)[:60]!r} is no URL that can be requested")
    url = url.partition("#")[0]
    if (
        not isinstance(method, str)
        or not method.isascii()
        or not method.isalpha()
        or not method.isupper()
        or len(method) > 16
    ):
        raise HarError(f"method {str(method)[:20]!r}")
    if isinstance(status, bool) or not isinstance(status, int) or not 200 <= status <= 599:
        raise HarError(f"status {str(status)[:20]} of {url[:60]!r}")
    headers = []
    for header in _list(response.get("headers")):
        name, value = json_object(header).get("name"), json_object(header).get("value")
        if isinstance(name, str) and isinstance(value, str) and not name.startswith(":"):
            # browsers join several of one name by line breaks
            headers += [(name, part.strip()) for part in value.split("\n")]
    content = json_object(response.get("content"))
    wire = response.get("bodySize")
    wire_bytes = wire if isinstance(wire, int) and not isinstance(wire, bool) and 0 <= wire < 1 << 40 else None
    by = next((numbers[url] for url in initiators(json_object(entry.get("_initiator"))) if url in numbers), None)
    return Captured(method, url, status, tuple(headers), _body(content, status, url), wire_bytes, by, late)


def _body(content: Mapping[str, Any], status: int, url: str) -> bytes:
    text, size = content.get("text"), content.get("size")
    if text is None:
        if isinstance(size, int) and size > 0 and status == 200:
            raise HarError(f"no body of {url[:60]!r}: export with content")
        return b""
    if not isinstance(text, str):
        raise HarError(f"a body of {url[:60]!r} that is no text")
    if content.get("encoding") == "base64":
        try:
            return base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError) as error:
            raise HarError(f"the body of {url[:60]!r}: {error}") from error
    return text.encode("utf-8", "surrogatepass")


def initiators(origin: Mapping[str, Any]) -> Iterator[str]:
    """URLs of what made a request, by Chromium's ``initiator``: the document or style sheet that was parsed, or scripts, nearest first."""
    url = origin.get("url")
    if isinstance(url, str) and url:
        yield url
    stack = json_object(origin.get("stack"))
    for _ in range(32):
        for frame in _list(stack.get("callFrames")):
            at = json_object(frame).get("url")
            if isinstance(at, str) and at:
                yield at
        stack = json_object(stack.get("parent"))


def _times(timings: Mapping[str, Any]) -> dict[str, float]:
    found = {}
    for name, key in (("dom_content_loaded", "onContentLoad"), ("load", "onLoad")):
        value = timings.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e7:
            found[name] = float(value)
    return found


def _late(entry: Mapping[str, Any], begun: datetime | None, load_ms: float | None) -> bool:
    started = _when(entry.get("startedDateTime"))
    if started is None or begun is None or load_ms is None:
        return False
    return (started - begun).total_seconds() * 1000 > load_ms


def _when(value: object) -> datetime | None:
    if not isinstance(value, str):
        return None
    try:
        when = datetime.fromisoformat(value)
    except ValueError:
        return None
    return when if when.tzinfo is not None else None


def json_object(value: object) -> dict[str, Any]:
    """``value``, or an empty one where it is none."""
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
