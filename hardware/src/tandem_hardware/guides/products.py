"""The guides' generated blocks, as files that ``generate`` keeps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from tandem_hardware.blocks import with_blocks
from tandem_hardware.guides import led_table, parts_tables
from tandem_hardware.places import HARDWARE
from tandem_hardware.product import Product

BLOCKS: Mapping[str, Mapping[str, Callable[[], str]]] = {
    "commuter": {"status-led": led_table.markdown},
    "assembly": {"parts": parts_tables.of_kits},
    "bench-unit": {"parts": partial(parts_tables.of_build, "bench")},
    "regulatory": {"batteries": parts_tables.batteries},
}
"""By guide: what makes each of its blocks."""


def products() -> list[Product]:
    """Each guide that has blocks: the text around them is its own."""
    return [Product(Path("guides", f"{name}.md"), partial(_guide, name, blocks)) for name, blocks in BLOCKS.items()]


def _guide(name: str, blocks: Mapping[str, Callable[[], str]]) -> bytes:
    path = HARDWARE / "guides" / f"{name}.md"
    return with_blocks(path, path.read_text(encoding="utf-8"), blocks).encode()
