"""The guides' generated blocks: as their sources make them, and what they say of batteries in aircraft."""

from __future__ import annotations

from pathlib import Path

import pytest

from tandem_hardware.bom import load
from tandem_hardware.catalogue import products
from tandem_hardware.guides import parts_tables
from tandem_hardware.guides.products import BLOCKS
from tandem_hardware.places import HARDWARE


@pytest.mark.parametrize("name", BLOCKS)
def test_a_guide_is_as_its_sources_make_it(name: str) -> None:
    product = next(one for one in products() if one.path == Path("guides", f"{name}.md"))
    assert product.same((HARDWARE / product.path).read_bytes(), product.make()) is None, "mend: ./kit hardware"


@pytest.mark.parametrize(
    ("capacity_wh", "said"),
    [
        (100.0, "without asking"),
        (100.1, "the airline's approval"),
        (160.0, "the airline's approval"),
        (160.1, "not at all"),
    ],
)
def test_a_battery_in_an_aircraft(capacity_wh: float, said: str) -> None:
    assert said in parts_tables.in_cabin(capacity_wh)


def test_each_kits_battery_may_fly_without_asking() -> None:
    kits = {
        build
        for part in load().values()
        if (part.capacity_wh or 0) > parts_tables.SMALL_WH
        for build in part.quantities
    }
    assert kits == set(parts_tables.KITS)
    assert "not at all" not in parts_tables.batteries()
