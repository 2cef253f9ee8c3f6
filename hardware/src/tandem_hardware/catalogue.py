"""All that is generated, in the order of its making: what a later one reads comes first."""

from __future__ import annotations

from tandem_hardware import paper, wiring
from tandem_hardware.product import Product


def products() -> list[Product]:
    """Each file that ``./kit hardware`` makes."""
    return [*paper.products(), *wiring.products()]
