"""A page made by seed: a document, style sheets, scripts and pictures of several origins, that a browser really lays out and that take as
many bytes and requests as wanted.

Shares of kinds and sizes are round numbers near what crawls of the web publish (most objects pictures, most bytes pictures and scripts,
sizes spread log-normally); no site is copied. Style sheets ask for pictures, scripts for pictures and for further scripts, so the objects
are a tree of four levels.
"""

from __future__ import annotations

import base64
import math
import random
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from tandem_server.content.page import Captured

_KINDS = {"css": (0.10, 12_000), "js": (0.30, 25_000), "png": (0.60, 24_000)}
"""Share of the objects, and the median's relative size."""
_DOCUMENT_SHARE = 0.02
_SPREAD = 0.8
"""Of the logarithm of a size."""
_LEAST_BYTES = 600
_ORIGIN_WEIGHTS = (0.4, 0.2, 0.12, 0.08)
_TYPES = {"css": "text/css", "js": "text/javascript", "png": "image/png", "html": "text/html; charset=utf-8"}


@dataclass(slots=True)
class _Object:
    number: int
    kind: str
    url: str
    size: int
    by: int
    asks: list[_Object] = field(default_factory=list)


def make(seed: int, objects: int, size_bytes: int, origins: int, scheme: str) -> list[Captured]:
    """``objects`` in all, the document first; bodies of about ``size_bytes`` together. Hosts end in ``.test``, which no resolver has."""
    chance = random.Random(seed)
    hosts = [f"www.page-{seed}.test", *(f"cdn{n}.page-{seed}.test" for n in range(1, origins))]
    made = _tree(chance, objects, size_bytes, [f"{scheme}://{host}" for host in hosts])
    document = _document(chance, made, max(_LEAST_BYTES, round(size_bytes * _DOCUMENT_SHARE)))
    root = Captured("GET", f"{scheme}://{hosts[0]}/", 200, _headers("html"), document)
    bodies = {"css": _style, "js": _script, "png": _picture}
    return [
        root,
        *(Captured("GET", one.url, 200, _headers(one.kind), bodies[one.kind](chance, one), by=one.by) for one in made),
    ]


def _tree(chance: random.Random, objects: int, size_bytes: int, bases: Sequence[str]) -> list[_Object]:
    kinds: list[str] = []
    for kind, (share, _) in _KINDS.items():
        kinds += [kind] * round(share * (objects - 1))
    kinds = (kinds + ["png"] * objects)[: objects - 1]
    weights = [_ORIGIN_WEIGHTS[min(n, len(_ORIGIN_WEIGHTS) - 1)] for n in range(len(bases))]
    sizes = [_KINDS[kind][1] * math.exp(chance.gauss(0, _SPREAD)) for kind in kinds]
    factor = size_bytes * (1 - _DOCUMENT_SHARE) / sum(sizes) if sizes else 0.0
    made: list[_Object] = []
    askers: list[_Object] = []
    for number, (kind, size) in enumerate(zip(kinds, sizes, strict=True), 1):
        base = chance.choices(bases, weights)[0]
        one = _Object(number, kind, f"{base}/{kind}/{number}.{kind}", max(_LEAST_BYTES, round(size * factor)), 0)
        asker = _asker(chance, kind, askers)
        if asker is not None:
            one.by = asker.number
            asker.asks.append(one)
        if kind in ("css", "js"):
            askers.append(one)
        made.append(one)
    return made


def _asker(chance: random.Random, kind: str, askers: Sequence[_Object]) -> _Object | None:
    """What asks for it; None: the document, as for most."""
    if kind == "css" or chance.random() < 0.7:
        return None
    able = [one for one in askers if one.kind == "js" or kind == "png"]
    return chance.choice(able) if able else None


def _headers(kind: str) -> tuple[tuple[str, str], ...]:
    return (("Content-Type", _TYPES[kind]), ("Cache-Control", "max-age=3600"), ("Access-Control-Allow-Origin", "*"))


def _document(chance: random.Random, made: Sequence[_Object], size: int) -> bytes:
    mine = [one for one in made if one.by == 0]
    head = [f'<link rel="stylesheet" href="{one.url}">' for one in mine if one.kind == "css"]
    scripts = [one for one in mine if one.kind == "js"]
    # a third blocks the parser, as third parties' do; the others are deferred or asynchronous
    words = ("", " defer", " async")
    head += [f'<script src="{one.url}"{words[n % 3]}></script>' for n, one in enumerate(scripts)]
    body = [
        f'<p>{_text(chance, 60)}</p><img src="{one.url}" width="120" height="80" alt="">'
        for one in mine
        if one.kind == "png"
    ]
    styled = [f'<div class="b{one.number}">&nbsp;</div>' for css in mine if css.kind == "css" for one in css.asks]
    start = '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>A stored page</title>'
    text = "".join([start, *head, "</head><body><h1>A stored page</h1>", *styled, *body])
    fill = max(0, size - len(text) - 40)
    return f"{text}<!--{_text(chance, fill)}--></body></html>".encode("ascii")


def _style(chance: random.Random, one: _Object) -> bytes:
    rules = "".join(f".b{p.number}{{background-image:url({p.url});height:40px}}" for p in one.asks)
    return _filled(chance, f"body{{font-family:sans-serif}}{rules}", one.size)


def _script(chance: random.Random, one: _Object) -> bytes:
    lines = []
    for wanted in one.asks:
        if wanted.kind == "js":
            lines.append(f'var s=document.createElement("script");s.src="{wanted.url}";document.head.appendChild(s);')
        else:
            lines.append(f'(new Image()).src="{wanted.url}";')
    return _filled(chance, "".join(lines) + f"window.made=(window.made||0)+{one.number};", one.size)


def _filled(chance: random.Random, text: str, size: int) -> bytes:
    return f"{text}/*{_text(chance, max(0, size - len(text) - 4))}*/".encode("ascii")


def _text(chance: random.Random, size: int) -> str:
    """Characters that compress little."""
    return base64.b64encode(chance.randbytes(size * 3 // 4 + 3)).decode("ascii")[:size].replace("--", "==")


def _picture(chance: random.Random, one: _Object) -> bytes:
    """A grey pixel, and as many bytes as wanted in a chunk of its own that decoders pass over."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    start = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0))
    end = chunk(b"IDAT", zlib.compress(b"\0\x80")) + chunk(b"IEND", b"")
    return start + chunk(b"tdMb", chance.randbytes(max(0, one.size - len(start) - len(end) - 12))) + end
