"""The bill of materials and the builds: read strictly, and consistent with themselves and the modems' drivers."""

import csv
import io
import re

import pytest

from tandem.modem.families import drivers
from tandem_hardware import bom, builds
from tandem_hardware.sources import SourceError

TOML = builds.SOURCE.read_text(encoding="utf-8")
PARTS = bom.load()
HEAD = ",".join(bom.COLUMNS) + "\n"


def row(**told: str) -> str:
    out = io.StringIO()
    csv.DictWriter(out, bom.COLUMNS, lineterminator="\n").writerow({name: told.get(name, "") for name in bom.COLUMNS})
    return HEAD + out.getvalue()


def test_a_wrong_line_is_named() -> None:
    for text, told in (
        ("id,part\n", "b.csv:1: the columns"),
        (row(id="Pi 2"), "b.csv:2: id is 'Pi 2'"),
        (row(id="a", peak_w="nan"), "b.csv:2: peak_w is 'nan'"),
        (row(id="a", qty_5g="1.5"), "b.csv:2: qty_5g is '1.5'"),
        (row(id="a", price_date="2025-13"), "b.csv:2: price_date is '2025-13'"),
        (row(id="a", usb_id="12D1:14dc"), "b.csv:2: usb_id is '12D1:14dc'"),
        (row(id="a", estimates="mass_g"), "b.csv:2: estimates names 'mass_g'"),
        (HEAD + "a,b\n", "b.csv:2: not "),
        (row(id="a") + row(id="a").removeprefix(HEAD), "b.csv:3: 'a' stands in line 2 already"),
    ):
        with pytest.raises(SourceError) as raised:
            bom.parse(text.encode(), "b.csv")
        assert str(raised.value).startswith(told)


def test_what_is_no_table_is_named_by_its_line() -> None:
    with pytest.raises(SourceError, match=r"\Ab\.csv:3: no UTF-8"):
        bom.parse(HEAD.encode() + b"a\n\xff", "b.csv")
    with pytest.raises(SourceError, match=r"\Ab\.toml: .*line 1"):
        builds.parse(b"= 1", "b.toml", PARTS)


def test_a_wrong_build_is_told_with_its_table() -> None:
    for old, new, told in (
        ('format = "tandem-builds/1"', 'format = "x"', "format is 'x'"),
        ("volts = 5.0", "volts = 0", "volts: "),
        ("hours_on = 2.0\n", "", "no hours_on"),
        ('pi-4b = "source"', 'pi-4b = "sun"', "'sun' is no part"),
        ('pi-4b = "source"', 'pi-4b = "pi-5"', "standard has no pi-5"),
        ('pi-4b = "source"', 'pi-4b = "status-led"', "feeds itself"),
        ('pi-4b = "source"', "pi-4b = 1", "is no feeder"),
        ('pi-4b = "source"', 'pi-4b = "case"', "is fed by case, which nothing feeds"),
        ('fan-40 = "pi-5:usb"\n', "", "fan-40 draws power and nothing feeds it"),
        ('full_with = ["supply-5a"]', "", "nothing says what raises low_a"),
        ("[build.bench]", "[build.bank]", "no build 'bank'"),
        ("port_a = 1.0", "ports_a = 1.0", "unknown key 'ports_a'"),
        ('battery = "battery-26ah"', 'battery = "battery-10ah"', "5g has no battery-10ah"),
    ):
        assert TOML.count(old) == 1
        with pytest.raises(SourceError) as raised:
            builds.parse(TOML.replace(old, new).encode(), "b.toml", PARTS)
        table = re.findall(r"(?m)^\[(.*)\]$", TOML[: TOML.index(old)])[-1:]
        where = f" [{table[0]}]" if "=" in old and table else ""
        assert str(raised.value).startswith(f"b.toml:{where}")
        assert told in str(raised.value)
        assert "; hint: " in str(raised.value)


BUILDS = builds.load(PARTS)
POWER = ("idle_w", "typical_w", "peak_w")
SIZE = ("length_mm", "width_mm", "height_mm")
MODEMS = [part for part in PARTS.values() if part.function.startswith("modem")]
_BRACKETS = re.compile(r"\[([a-z_]+) ([0-9a-f]{4}:[0-9a-f]{4})\]")


def known_ids(driver: str) -> set[str]:
    """Of a driver's devices."""
    return {f"{one.vendor}:{one.product}" for one in drivers()[driver].devices}


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


def test_usb_limits_are_those_of_the_parts() -> None:
    for name, usb in BUILDS.usb.items():
        assert PARTS[name].feeds_a == usb.total_a, name
        assert usb.source
