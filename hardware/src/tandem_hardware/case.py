"""Whether the parts fit into the case: case/BUILD.json, the places that OpenSCAD works out of layout.scad, against the parts' sizes. mm.

x along the box, y from the front wall to the back, z up; the origin is the base's outer corner, without the strap's lugs.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tandem_hardware.bom import Part
from tandem_hardware.sources import HARDWARE, SourceError

CASES = ("paper", "standard", "5g")
FOLDER = HARDWARE / "case"
MODEMS_APART = 150.0
"""Two antennas side by side hear each other: half a wavelength at 1 GHz."""
RISE_K = 20.0
"""The air may leave the case this much warmer than it comes."""

Vector = tuple[float, float, float]


class Box(NamedTuple):
    """A part in its place: ``id`` of the BOM, ``kind`` of drawing (pi, battery, hub, fan, modem, antenna, led)."""

    id: str
    kind: str
    at: Vector
    size: Vector

    @property
    def end(self) -> Vector:
        """The corner opposite to ``at``."""
        return (self.at[0] + self.size[0], self.at[1] + self.size[1], self.at[2] + self.size[2])


def layout(build: str, folder: Path = FOLDER) -> dict[str, Any]:
    """One build's: ``outer`` (with the lid, without the lugs), ``parts`` (``Box``), and the other names that layout.scad echoes."""
    found = dict(json.loads((folder / f"{build}.json").read_text(encoding="utf-8")))
    return found | {"parts": [Box(one[0], one[1], tuple(one[2]), tuple(one[3])) for one in found["parts"]]}


def parts_scad(parts: Mapping[str, Part]) -> str:
    """parts.scad: the sizes of the parts that have one."""
    sizes = [
        f'    id == "{one.id}" ? [{one.length_mm:g}, {one.width_mm:g}, {one.height_mm:g}] :'
        for one in parts.values()
        if None not in (one.length_mm, one.width_mm, one.height_mm)
    ]
    lines = ["// Made by ./kit hardware of ../bom.csv: change that. mm.", "function size(id) =", *sizes]
    return "\n".join([*lines, '    assert(false, str(id, " has no size in bom.csv"));']) + "\n"


def apart(one: Box, other: Box) -> float:
    """The widest gap along an axis; below 0 they are in each other."""
    return max(
        max(a - b_end, b - a_end) for a, a_end, b, b_end in zip(one.at, one.end, other.at, other.end, strict=True)
    )


def faults(of: Mapping[str, Any], parts: Mapping[str, Part]) -> list[str]:
    """All that does not fit, in words."""
    boxes, wall, gap = of["parts"], of["wall"], of["clearance"]
    wrong: list[str] = []
    for one in boxes:
        if parts[one.id].quantities.get(of["build"]) != sum(other.id == one.id for other in boxes):
            wrong.append(f"{of['build']} has another number of {one.id}")
        # The LED looks out of the lid; only the Pi keeps its distance from it.
        high = of["outer"][2] - (0 if one.kind == "led" else wall) - (gap if one.kind == "pi" else 0)
        room = (of["outer"][0] - wall, of["outer"][1] - wall, high)
        if min(one.at) < wall - 1e-6 or any(end > most + 1e-6 for end, most in zip(one.end, room, strict=True)):
            wrong.append(f"{one.id} is not inside")
    for one, other in itertools.combinations(boxes, 2):
        if apart(one, other) < (0.0 if "antenna" in (one.kind, other.kind) else gap) - 1e-6:
            wrong.append(f"{one.id} and {other.id} are {apart(one, other):.1f} mm apart")
    kinds: dict[str, list[Box]] = {}
    for one in boxes:
        kinds.setdefault(one.kind, []).append(one)
    left, right = kinds["modem"]
    if right.at[0] - left.end[0] < MODEMS_APART:
        wrong.append("the modems are too near to each other")
    wrong += [
        f"{other.id} is too near to {one.id}"
        for one in kinds.get("antenna", kinds["modem"])  # a stick is its own antenna
        for other in (*kinds["battery"], *kinds.get("hub", ()), *kinds["pi"])
        if max(other.at[0] - one.end[0], one.at[0] - other.end[0]) < of["antenna_clear"] - 1e-6
    ]
    inlet, outlet, need = air_mm2(of, parts)
    if inlet < need or (outlet < need and "fan" not in kinds):
        wrong.append(f"air: {inlet:.0f} mm² in, {outlet:.0f} mm² out, {need:.0f} mm² needed")
    return wrong


def check(parts: Mapping[str, Part]) -> None:
    """SourceError: something does not fit into its case."""
    for build in CASES:
        if wrong := faults(layout(build), parts):
            raise SourceError(
                f"case/layout.scad: build {build}: {wrong[0]}; hint: its measures, or the sizes in bom.csv"
            )


def chimney_mm2(heat_w: float, height_mm: float, rise_k: float) -> float:
    """Open area that carries ``heat_w`` away by the air's own rise: P = rho c A v dT with v = 0.6 sqrt(2 g h dT / T), T 300 K."""
    speed = 0.6 * math.sqrt(2 * 9.81 * height_mm / 1000 * rise_k / 300)
    return heat_w / (1.2 * 1005 * speed * rise_k) * 1e6


def air_mm2(of: Mapping[str, Any], parts: Mapping[str, Part]) -> tuple[float, float, float]:
    """Open area in the front wall and in the lid, and what the parts' typical power needs without a fan."""
    heat_w = sum(one.quantities.get(of["build"], 0) * (one.typical_w or 0.0) for one in parts.values())
    inlet, outlet = (
        len(of[f"{way}lets"]) * of["slot"] * (of[f"{way}let_{axis}"][1] - of[f"{way}let_{axis}"][0])
        for way, axis in (("in", "z"), ("out", "y"))
    )
    return inlet, outlet, chimney_mm2(heat_w, of["outer"][2], RISE_K)
