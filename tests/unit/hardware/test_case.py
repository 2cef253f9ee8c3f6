"""The case holds the parts of the bill of materials, and what is printed is what the layout says."""

import copy
import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tandem_hardware import bom, case
from tandem_hardware.__main__ import main
from tandem_hardware.sources import SourceError

PARTS = bom.load()
builds = pytest.mark.parametrize("of", [case.layout(build) for build in case.CASES], ids=lambda one: one["build"])


@builds
def test_every_part_fits_with_its_clearance_and_antennas_are_clear(of: dict[str, Any]) -> None:
    assert case.faults(of, PARTS) == []


def test_the_makefile_gets_the_sizes_of_the_bill_of_materials_and_hears_whether_all_fits(capsys, monkeypatch):
    assert main(["sizes"]) == 0
    assert capsys.readouterr().out == (case.FOLDER / "parts.scad").read_text(encoding="utf-8")
    assert main(["fit"]) == 0
    monkeypatch.setattr(case, "MODEMS_APART", 1000.0)
    assert main(["fit"]) == 2
    assert "build paper: the modems are too near to each other; hint: " in capsys.readouterr().err


def moved(of: dict[str, Any], kind: str, by: tuple[float, float, float]) -> dict[str, Any]:
    """The layout with the first part of a kind elsewhere."""
    changed = copy.copy(of)
    index = next(n for n, one in enumerate(of["parts"]) if one.kind == kind)
    one = of["parts"][index]
    at = tuple(a + b for a, b in zip(one.at, by, strict=True))
    changed["parts"] = [*of["parts"][:index], one._replace(at=at), *of["parts"][index + 1 :]]
    return changed


@pytest.mark.parametrize(
    ("kind", "by", "told"),
    [
        ("pi", (0, 10, 0), "pi-4b and battery-20ah are -"),
        ("pi", (0, -20, 0), "pi-4b is not inside"),
        ("modem", (150, 0, 0), "the modems are too near to each other"),
        ("battery", (-3, 0, 0), "battery-20ah is too near to antenna-lte"),
        ("battery", (0, 0, 13), "battery-20ah is not inside"),
    ],
)
def test_what_does_not_fit_is_told(kind: str, by: tuple[float, float, float], told: str) -> None:
    assert told in "\n".join(case.faults(moved(case.layout("standard"), kind, by), PARTS))


def test_another_number_of_parts_and_too_little_air_are_told() -> None:
    of = case.layout("standard")
    more = {**PARTS, "antenna-lte": dataclasses.replace(PARTS["antenna-lte"], quantities={"standard": 6})}
    assert case.faults(of, more) == ["standard has another number of antenna-lte"] * 4
    hot = {**PARTS, "pi-4b": dataclasses.replace(PARTS["pi-4b"], typical_w=40.0)}
    assert case.faults(of, hot)[0].startswith("air: 3584 mm² in, ")
    with pytest.raises(SourceError, match=r"case/layout.scad: build standard: air: .*; hint: "):
        case.check(hot)


@builds
def test_the_case_holds_what_the_bill_of_materials_has_for_that_build_and_as_large(of: dict[str, Any]) -> None:
    for one in of["parts"]:
        part = PARTS[one.id]
        assert sorted(one.size) == pytest.approx(sorted((part.length_mm, part.width_mm, part.height_mm)))
    electric = {"pi-2b", "pi-4b", "pi-5", "hub-powered", "battery-10ah", "battery-20ah", "battery-26ah", "stick-zte-mf833v",
                "carrier-mpcie-usb", "carrier-m2-usb", "antenna-lte", "antenna-5g", "fan-40", "status-led"}  # fmt: skip
    assert {one.id for one in of["parts"]} == {id_ for id_ in electric if of["build"] in PARTS[id_].quantities}


@builds
def test_openings_are_where_they_belong(of: dict[str, Any]) -> None:
    (pi,), (battery,), (led,) = ([one for one in of["parts"] if one.kind == kind] for kind in ("pi", "battery", "led"))
    outer, wall, slot = of["outer"], of["wall"], of["slot"]
    # raspberrypi.com, mechanical drawings: 58 by 49 mm, 3.5 mm from the edges.
    for (x, y), (right, back) in zip(of["holes"], itertools.product((3.5, 61.5), (3.5, 52.5)), strict=True):
        assert (x - pi.at[0], y - pi.at[1]) == pytest.approx((right, back))
    assert pi.at[2] == pytest.approx(wall + of["standoff"])
    assert of["led"] == pytest.approx((led.at[0] + 2.5, led.at[1] + 2.5))
    assert led.end[2] > outer[2] - wall  # it reaches into the lid
    # The Ethernet lead comes in beside the Pi's ports, the charging lead beside the battery's sockets.
    x, z, width, height = of["ethernet"]
    assert pi.end[0] <= x
    assert x + width <= pi.end[0] + of["plugs"]
    assert z + height <= outer[2] - wall
    x, z, width, height = of["charge"]
    assert battery.end[0] <= x <= x + width <= outer[0] - wall
    assert z + height <= outer[2] - wall
    # No slot is cut into a post, the LED's collar, or another opening.
    for inlet in of["inlets"]:
        for post, y in of["posts"]:
            assert y > outer[1] / 2 or abs(inlet + slot / 2 - post) > (slot + of["post"]) / 2
        assert inlet + slot < of["ethernet"][0] or inlet > of["ethernet"][0] + of["ethernet"][2]
    assert all(abs(outlet + slot / 2 - of["led"][0]) > (slot + of["led_collar"]) / 2 for outlet in of["outlets"])
    # Air rises: it comes in below where it leaves.
    assert of["inlet_z"][1] < outer[2] - wall


def test_the_chimney_by_hand() -> None:
    """10 W, 50 mm, 20 K: v = 0.6 sqrt(2 * 9.81 * 0.05 * 20 / 300) = 0.6 * 0.25573 = 0.15344 m/s; 10 / (1.2 * 1005 * 0.15344 * 20)
    = 0.0027020 m2."""
    assert case.chimney_mm2(10.0, 50.0, 20.0) == pytest.approx(2702, abs=1)


def printed(build: str, half: str) -> NDArray[np.float64]:
    """Of binary STL: corners of shape (n, 3, 3): triangle, corner, x y z; mm."""
    triangle = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("nothing", "<u2")])
    stl = (case.FOLDER / "stl" / f"{build}-{half}.stl").read_bytes()
    return np.frombuffer(stl, triangle, offset=84)["corners"].astype(np.float64)


def volume_mm3(corners: NDArray[np.float64]) -> float:
    """What closed triangles enclose."""
    return float(np.einsum("ij,ij->", corners[:, 0], np.cross(corners[:, 1], corners[:, 2])) / 6)


def open_edges(corners: Any) -> int:
    """Edges that do not belong to just two triangles: each is passed once in each direction."""
    edges: dict[tuple[tuple[float, ...], tuple[float, ...]], int] = {}
    for a, b, c in (tuple(map(tuple, one)) for one in corners.tolist()):
        for ends in ((a, b), (b, c), (c, a)):
            edges[ends] = edges.get(ends, 0) + 1
    return sum(edges.get((other, one)) != count for (one, other), count in edges.items())


@builds
def test_what_is_printed_is_closed_and_as_large_as_the_layout(of: dict[str, Any]) -> None:
    base, lid = (printed(of["build"], half) for half in ("base", "lid"))
    assert (open_edges(base), open_edges(lid)) == (0, 0)
    (x, y, z), wall, lug = of["outer"], of["wall"], of["lug"]
    assert base.min((0, 1)) == pytest.approx((-lug, 0, 0), abs=0.01)
    assert base.max((0, 1)) == pytest.approx((x + lug, y, z - wall), abs=0.01)
    assert lid.min((0, 1)) == pytest.approx((0, 0, 0), abs=0.01)
    assert lid.max((0, 1))[:2] == pytest.approx((x, y), abs=0.01)
    # Walls: a floor, four walls and no more than half as much again of posts and bays.
    shell = wall * (x * y + 2 * (x + y) * (z - wall))
    assert 0.6 * shell < volume_mm3(base) < 1.5 * shell
    assert wall >= 2.0
    assert of["lid_gap"] < of["clearance"]
