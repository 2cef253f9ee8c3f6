"""The bill of materials against itself, the builds and the modems' drivers."""

from __future__ import annotations

import re
import tomllib

import pytest

from tandem_hardware import bom, builds
from tandem_hardware.places import ROOT

PARTS = bom.load()
BUILDS = builds.load(PARTS)
DRIVERS = ROOT / "collector" / "src" / "tandem" / "modem"
POWER = ("idle_w", "typical_w", "peak_w")
SIZE = ("length_mm", "width_mm", "height_mm")
MODEMS = [part for part in PARTS.values() if part.function.startswith("modem")]
_BRACKETS = re.compile(r"\[([a-z_]+) ([0-9a-f]{4}:[0-9a-f]{4})\]")


def known_ids(driver: str) -> set[str]:
    """Of a driver's ports.toml."""
    content = tomllib.loads((DRIVERS / driver / "ports.toml").read_text(encoding="utf-8"))
    return {f"{one['vendor']}:{one['product']}" for one in content["device"]}


def test_the_modems_are_the_ones_with_drivers_and_each_names_one_that_knows_its_usb_id() -> None:
    assert {part.id for part in PARTS.values() if part.driver} == {part.id for part in MODEMS}
    assert len(MODEMS) == 4
    assert [part.id for part in MODEMS if part.usb_id not in known_ids(part.driver)] == []


def test_each_alternative_modem_names_a_driver_that_knows_its_usb_id_and_no_other_part_does() -> None:
    wrong = [part.id for part in MODEMS if not part.alternatives]
    for part, alternative in ((one, text) for one in PARTS.values() for text in one.alternatives):
        found = _BRACKETS.search(alternative)
        if (found is None and (part in MODEMS or "[" in alternative)) or (
            found and found[2] not in known_ids(found[1])
        ):
            wrong.append(f"{part.id}: {alternative!r} names no [driver vendor:product] that is known")
    assert wrong == []


def test_each_figure_is_sourced_or_an_estimate() -> None:
    wrong = [
        f"{part.id}: {name} has no source and is no estimate"
        for part in PARTS.values()
        for names, source in (((*POWER, "feeds_a"), part.power_source), ((*SIZE, "mass_g"), part.size_source))
        for name in names
        if getattr(part, name) is not None and not source and name not in part.estimates
    ]
    assert wrong == []


def test_prices_have_their_month_powers_grow_and_part_numbers_have_makers() -> None:
    """A part number: one word of letters, digits and what makers put between."""
    wrong = []
    for part in PARTS.values():
        watts = [getattr(part, name) for name in POWER]
        kept = {
            "price and month": (part.price_eur is None) == (part.price_date == ""),
            "idle <= typical <= peak": watts == [None] * 3 or (None not in watts and watts == sorted(watts)),
            "maker and part number": not part.mpn
            or (part.maker and re.fullmatch(r"[A-Z0-9][A-Za-z0-9]*(?:[-/. ][A-Za-z0-9]+)*", part.mpn)),
        }
        wrong += [(part.id, rule) for rule, holds in kept.items() if not holds]
    assert wrong == []


def test_what_goes_into_the_case_has_its_size_and_everything_a_mass() -> None:
    not_boxed = {"case"} | {one for one in PARTS if one.startswith("supply-")}
    for part in PARTS.values():
        if part.id not in not_boxed:
            assert all(getattr(part, name) for name in SIZE), part.id
        assert part.mass_g, part.id


def test_a_battery_tells_what_it_holds_and_gives() -> None:
    batteries = [part for part in PARTS.values() if part.function == "battery"]
    assert len(batteries) == 3
    for part in batteries:
        hours = re.fullmatch(r"battery-(\d+)ah", part.id)
        assert hours is not None
        assert part.capacity_wh is not None
        assert part.feeds_a
        assert part.capacity_wh == pytest.approx(int(hours[1]) * 3.7)
        assert part.capacity_wh < 100, "cabin luggage ends at 100 Wh"


@pytest.mark.parametrize("name", ["paper", "standard", "5g"])
def test_a_probe_has_one_computer_two_modems_and_what_they_need(name: str) -> None:
    count = {part.id: part.quantities.get(name, 0) for part in PARTS.values()}
    build = BUILDS.builds[name]
    assert count[build.host] == count["sd-card"] == count["gnss-u-blox-7"] == count["case"] == 1
    assert sum(count[one.id] for one in MODEMS) == 2
    assert sum(count[one] for one in count if one.startswith("pi-")) == 1
    assert count["carrier-mpcie-usb"] == count["module-ec25"]
    assert count["carrier-m2-usb"] == count["module-rm500q"]
    assert count["antenna-lte"] == 2 * count["module-ec25"]
    assert count["antenna-5g"] == 4 * count["module-rm500q"]
    assert count["led-resistors"] == 3 * count["status-led"] == 3


def test_one_pi_plays_one_modem_on_the_bench() -> None:
    assert PARTS["pi-zero-2w"].quantities == {"bench": 2}
    assert PARTS["sd-card"].quantities["bench"] == 2
    assert not any("bench" in modem.quantities for modem in MODEMS)


@pytest.mark.parametrize("name", bom.BUILDS)
def test_what_feeds_what_names_parts_of_the_build(name: str) -> None:
    build = BUILDS.builds[name]
    for part, feed in build.fed_by.items():
        assert name in PARTS[part].quantities
        assert PARTS[part].peak_w, f"{part} is fed and draws nothing"
        assert feed.by == builds.ROOT_FEED or name in PARTS[feed.by].quantities


def test_the_hub_is_one_whose_ports_switch_one_by_one() -> None:
    """The recovery ladder's step power needs it: DUB-H7 revisions D and E stand in uhubctl's list."""
    hub = PARTS["hub-powered"]
    assert hub.mpn == "DUB-H7"
    assert "rev. D or E" in hub.part
    assert BUILDS.builds["standard"].fed_by["carrier-mpcie-usb"].by == "hub-powered"


def test_usb_limits_are_those_of_the_parts() -> None:
    for name, usb in BUILDS.usb.items():
        assert PARTS[name].feeds_a == usb.total_a, name
        assert usb.source
