"""All that is generated, in the order of its making: what a later one reads comes first."""

from __future__ import annotations

from tandem_hardware import case_products, paper, wiring
from tandem_hardware.guides import products as guides
from tandem_hardware.product import Product


def products() -> list[Product]:
    """Each file that ``./kit hardware`` makes."""
    return [*paper.products(), *wiring.products(), *case_products.products(), *guides.products()]
