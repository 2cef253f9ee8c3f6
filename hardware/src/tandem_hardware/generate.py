"""Makes everything that is made of sources, or says what differs from them."""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Iterable, Sequence

from tandem_hardware.places import HARDWARE
from tandem_hardware.product import Product

DIGESTS = HARDWARE / "drawn.sha256"
"""Each drawn product's digest, over itself and all that drawings are made of; written when they were drawn."""
SOURCES = (
    "bom.csv",
    "builds.toml",
    "case/*.scad",
    "case/*.toml",
    "wiring/*.yml",
    *(f"src/tandem_hardware/{name}.py" for name in ("bom", "case_*", "stl", "wiring")),
)


def generate(products: Iterable[Product], only: Sequence[str] = ()) -> int:
    """Write each product that differs from what is kept. Exit status: 0."""
    products = list(products)
    for product in _wanted(products, only):
        began = time.monotonic()
        path = HARDWARE / product.path
        fresh = product.make()
        kept = path.read_bytes() if path.exists() else None
        if kept is not None and product.same(kept, fresh) is None:
            _say(product, "as it was", began)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f"{path.name}.tmp")
        part.write_bytes(fresh)
        part.replace(path)
        _say(product, "written" if kept is not None else "new", began)
    if not only:
        DIGESTS.write_text("".join(f"{digest}  {path}\n" for path, digest in sorted(_digests(products).items())))
    return 0


def check(products: Iterable[Product], only: Sequence[str] = (), *, by_digest: bool = False) -> int:
    """Say what is not as its sources make it; ``by_digest``: what is drawn is not drawn again, but held against the digest of it and of
    its sources. Exit status: 1 when something is not."""
    wrong: list[str] = []
    wanted = _wanted(products, only)
    digests = _digests(wanted) if by_digest else {}
    kept = dict(line.split("  ", 1)[::-1] for line in DIGESTS.read_text().splitlines()) if DIGESTS.exists() else {}
    for product in wanted:
        began = time.monotonic()
        path = HARDWARE / product.path
        if not path.exists():
            why: str | None = "missing"
        elif by_digest and product.drawn:
            name = str(product.path)
            why = None if kept.get(name) == digests[name] else "it or a source changed since it was drawn"
        else:
            why = product.same(path.read_bytes(), product.make())
        _say(product, why or "as its sources make it", began)
        if why is not None:
            wrong.append(f"hardware/{product.path}: {why}; hint: ./kit hardware, look at it, commit it")
    for line in wrong:
        sys.stderr.write(f"{line}\n")
    return 1 if wrong else 0


def _digests(products: Iterable[Product]) -> dict[str, str]:
    sources = hashlib.sha256()
    for pattern in SOURCES:
        for path in sorted(HARDWARE.glob(pattern)):
            sources.update(path.name.encode() + b"\n" + path.read_bytes())
    drawn = {str(one.path): HARDWARE / one.path for one in products if one.drawn}
    return {
        name: hashlib.sha256(sources.digest() + path.read_bytes()).hexdigest()
        for name, path in drawn.items()
        if path.exists()
    }


def _wanted(products: Iterable[Product], only: Sequence[str]) -> list[Product]:
    return [one for one in products if not only or any(name in str(one.path) for name in only)]


def _say(product: Product, how: str, began: float) -> None:
    sys.stderr.write(f"hardware: {time.monotonic() - began:5.1f} s  {product.path}  {how}\n")
