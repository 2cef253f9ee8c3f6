"""Makes everything that is made of sources, or says what differs from them."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence

from tandem_hardware.places import HARDWARE
from tandem_hardware.product import Product


def generate(products: Iterable[Product], only: Sequence[str] = ()) -> int:
    """Write each product that differs from what is kept. Exit status: 0."""
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
    return 0


def check(products: Iterable[Product], only: Sequence[str] = ()) -> int:
    """Say what is not as its sources make it. Exit status: 1 when something is not."""
    wrong: list[str] = []
    for product in _wanted(products, only):
        began = time.monotonic()
        path = HARDWARE / product.path
        why = product.same(path.read_bytes(), product.make()) if path.exists() else "missing"
        _say(product, why or "as its sources make it", began)
        if why is not None:
            wrong.append(f"hardware/{product.path}: {why}; mend: ./kit hardware, look at it, commit it")
    for line in wrong:
        sys.stderr.write(f"{line}\n")
    return 1 if wrong else 0


def _wanted(products: Iterable[Product], only: Sequence[str]) -> list[Product]:
    return [one for one in products if not only or any(name in str(one.path) for name in only)]


def _say(product: Product, how: str, began: float) -> None:
    sys.stderr.write(f"hardware: {time.monotonic() - began:5.1f} s  {product.path}  {how}\n")
