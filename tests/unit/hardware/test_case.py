"""The case holds the parts of the bill of materials, and what is printed is what the layout says."""

import copy
import dataclasses
import itertools
from pathlib import Path

import pytest

from tandem_hardware import bom, case_products, case_render, stl, wiring
from tandem_hardware.case_layout import (
    CASES,
    HOLE_EDGE,
    LED_COLLAR,
    STANDOFF,
    Box,
    Layout,
    chimney_mm2,
    layout,
    measures,
)
from tandem_hardware.errors import SourceError

PARTS = bom.load()
TOLD = measures()
WALL, GAP = TOLD["print"]["wall_mm"], TOLD["print"]["clearance_mm"]
KINDS = {"pi", "battery", "hub", "modem", "antenna", "fan", "led"}
builds = pytest.mark.parametrize("of", [layout(PARTS, build) for build in CASES], ids=lambda one: one.build)


def apart(one: Box, other: Box) -> float:
    """The widest gap along an axis; below 0 they are in each other."""
    return max(
        max(a - b_end, b - a_end) for a, a_end, b, b_end in zip(one.at, one.end, other.at, other.end, strict=True)
    )


def faults(of: Layout) -> list[str]:
    """All that does not fit."""
    wrong = []
    for one in of.parts:
        # The LED looks out of the lid; flat antennas lie on floor and walls.
        room = 0.0 if one.kind in ("antenna", "fan", "battery", "hub", "modem") else GAP
        high = of.outer[2] if one.kind == "led" else of.outer[2] - WALL
        inside = all(at >= WALL - 1e-6 for at in one.at) and one.end[0] <= of.outer[0] - WALL + 1e-6
        if not inside or one.end[1] > of.outer[1] - WALL + 1e-6 or one.end[2] > high - room + GAP + 1e-6:
            wrong.append(f"{one.id} is not inside")
    for one, other in itertools.combinations(of.parts, 2):
        need = 0.0 if "antenna" in (one.kind, other.kind) else GAP
        if apart(one, other) < need - 1e-6:
            wrong.append(f"{one.id} and {other.id} are {apart(one, other):.1f} mm apart")
    left, right = of.kind("modem")
    if right.at[0] - left.end[0] < TOLD["clear"]["modem_apart_mm"]:
        wrong.append("the modems are too near")
    # A stick is its own antenna.
    wrong += [
        f"{other.id} is too near to {one.id}"
        for one in of.kind("antenna") or of.kind("modem")
        for other in (*of.kind("battery"), *of.kind("hub"), *of.kind("pi"))
        if max(other.at[0] - one.end[0], one.at[0] - other.end[0]) < TOLD["clear"]["antenna_mm"] - 1e-6
    ]
    return wrong


@builds
def test_every_part_fits_with_its_clearance_and_antennas_are_clear(of: Layout) -> None:
    assert faults(of) == []


@builds
def test_the_case_holds_what_the_bill_of_materials_has_for_that_build_and_as_large(of: Layout) -> None:
    held = {one.id: sum(other.id == one.id for other in of.parts) for one in of.parts}
    for id_, count in held.items():
        part = PARTS[id_]
        assert count == part.quantities[of.build]
        sides = sorted((part.length_mm, part.width_mm, part.height_mm))
        for one in of.parts:
            assert one.id != id_ or sorted(one.size) == pytest.approx(sides)
    assert {one.kind for one in of.parts} <= KINDS
    electric = {"pi-2b", "pi-4b", "pi-5", "hub-powered", "battery-10ah", "battery-20ah", "battery-26ah", "stick-zte-mf833v",
                "carrier-mpcie-usb", "carrier-m2-usb", "antenna-lte", "antenna-5g", "fan-40", "status-led"}  # fmt: skip
    assert set(held) == {id_ for id_ in electric if of.build in PARTS[id_].quantities}


@builds
def test_openings_are_where_they_belong(of: Layout) -> None:
    (pi,), (battery,), (led,) = of.kind("pi"), of.kind("battery"), of.kind("led")
    corners = itertools.product((HOLE_EDGE, HOLE_EDGE + 58), (HOLE_EDGE, HOLE_EDGE + 49))
    for (x, y), (right, back) in zip(of.pi_holes, corners, strict=True):
        assert (x - pi.at[0], y - pi.at[1]) == pytest.approx((right, back))
    assert pi.at[2] == pytest.approx(WALL + STANDOFF)
    assert of.led == pytest.approx((led.at[0] + 2.5, led.at[1] + 2.5))
    assert led.end[2] > of.outer[2] - WALL  # it reaches into the lid
    # The Ethernet lead comes in beside the Pi's ports, the charging lead beside the battery's sockets.
    x, z, width, height = of.ethernet
    assert pi.end[0] <= x
    assert x + width <= pi.end[0] + TOLD["clear"]["plugs_mm"]
    assert z + height <= of.outer[2] - WALL
    x, z, width, height = of.charge
    assert battery.end[0] <= x <= x + width <= of.outer[0] - WALL
    assert z + height <= of.outer[2] - WALL
    # No slot is cut into a post, the LED's collar, or another opening.
    for slot in of.inlets:
        for post, y in of.posts:
            assert y > of.outer[1] / 2 or abs(slot + of.slot / 2 - post) > (of.slot + 7) / 2
        assert slot + of.slot < of.ethernet[0] or slot > of.ethernet[0] + of.ethernet[2]
    assert all(abs(slot + of.slot / 2 - of.led[0]) > (of.slot + LED_COLLAR) / 2 for slot in of.outlets)
    # Air rises: it comes in below where it leaves.
    assert of.inlet_z[1] < of.outer[2] - WALL


@builds
def test_the_air_that_the_heat_needs_gets_through_or_there_is_a_fan(of: Layout) -> None:
    need = chimney_mm2(case_products.heat_w(of.build), of.outer[2], TOLD["air"]["rise_k"])
    assert of.inlet_mm2 >= need
    assert of.outlet_mm2 >= need or of.kind("fan")


def test_the_chimney_by_hand() -> None:
    """10 W, 50 mm, 20 K: v = 0.6 sqrt(2 * 9.81 * 0.05 * 20 / 300) = 0.6 * 0.25573 = 0.15344 m/s; 10 / (1.2 * 1005 * 0.15344 * 20)
    = 0.0027020 m2."""
    assert chimney_mm2(10.0, 50.0, 20.0) == pytest.approx(2702, abs=1)


@builds
def test_what_is_printed_is_closed_and_as_large_as_the_layout(of: Layout) -> None:
    base, lid = (
        stl.body(stl.unpack((case_render.FOLDER / "stl" / f"{of.build}-{part}.stl").read_bytes()))
        for part in ("base", "lid")
    )
    assert (base.open_edges, lid.open_edges) == (0, 0)
    lug = TOLD["strap"]["lug_mm"]
    assert base.low == pytest.approx((-lug, 0, 0), abs=0.01)
    assert base.high == pytest.approx((of.outer[0] + lug, of.outer[1], of.outer[2] - WALL), abs=0.01)
    assert (lid.low, lid.high[:2]) == (pytest.approx((0, 0, 0), abs=0.01), pytest.approx(of.outer[:2], abs=0.01))
    # Walls: a floor, four walls and no more than half as much again of posts and bays.
    x, y, z = of.outer
    shell = WALL * (x * y + 2 * (x + y) * (z - WALL))
    assert 0.6 * shell < base.volume_mm3 < 1.5 * shell
    assert WALL >= 2.0
    assert TOLD["print"]["lid_gap_mm"] < GAP


def test_a_part_without_a_size_and_a_build_without_a_part_are_told() -> None:
    small = {**PARTS, "pi-4b": dataclasses.replace(PARTS["pi-4b"], width_mm=None)}
    with pytest.raises(SourceError, match=r"bom.csv:\d+: pi-4b has no size"):
        layout(small, "standard")
    told = copy.deepcopy(TOLD)
    told["build"]["paper"]["battery"] = "battery-26ah"
    with pytest.raises(SourceError, match="build paper has no 'battery-26ah'"):
        layout(PARTS, "paper", told)


def test_a_mistake_in_the_source_is_told_in_one_line(tmp_path: Path) -> None:
    if case_render.shutil.which("openscad") is None:
        pytest.skip("no openscad")
    (tmp_path / "tandem.scad").write_text("cube([1, 2, 3]")
    (tmp_path / "layout.scad").write_text("")
    with pytest.raises(SourceError) as error:
        case_render.printed("paper", "base", tmp_path)
    assert str(error.value).startswith("tandem.scad: ")
    assert "\n" not in str(error.value)


@builds
def test_cables_reach(of: Layout) -> None:
    """Along the walls from part to part, and four centimetres for the bends."""
    diagram = wiring.read(of.build)
    checked = 0
    for cable in (one for one in diagram.pieces.values() if one.part and one.part.startswith("cable-")):
        ends = {name for place in cable.places for name, _ in diagram.across(cable.name, place)}
        boxes = []
        for name in ends:
            held = [one for one in of.parts if one.id == diagram.pieces[name].part]
            boxes += held[:1] if not name.endswith("_B") else held[-1:]
        one, other = boxes
        way = sum(
            max(0.0, b - a_end, a - b_end)
            for a, a_end, b, b_end in zip(one.at, one.end, other.at, other.end, strict=True)
        )
        if "battery" in (one.kind, other.kind):  # its sockets are at its right end
            battery, rest = (one, other) if one.kind == "battery" else (other, one)
            way = abs(battery.end[0] - rest.at[0]) + max(0.0, battery.at[1] - rest.end[1])
        assert way + 40 <= PARTS[cable.part].length_mm, f"{cable.name}: {way:.0f} mm"
        checked += 1
    assert checked


def test_a_body_that_is_another_is_told_and_one_divided_otherwise_is_not() -> None:
    kept = (case_render.FOLDER / "stl" / "paper-lid.stl").read_bytes()
    triangles = stl.unpack(kept)
    assert stl.pack(triangles[::-1]) == kept
    middle = triangles[0].mean(axis=0)
    split = [[a, b, middle] for a, b in itertools.pairwise([*triangles[0], triangles[0][0]])]
    assert (
        stl.same_body(kept, stl.pack(stl.np.concatenate([triangles[1:], stl.np.array(split, dtype="float32")]))) is None
    )
    assert str(stl.same_body(kept, stl.pack(triangles + stl.np.float32(0.5)))).startswith("x 0.0 mm, now 0.5 mm")
    assert str(stl.same_body(kept, stl.pack(triangles[10:]))).startswith(("volume", "surface", "x", "y", "z"))
    assert stl.same_body(kept, kept[:-1]).startswith("no STL")
    assert stl.same_body(kept, b"").startswith("no STL")
