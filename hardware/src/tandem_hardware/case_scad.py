"""layout.scad: the places of the parts, as OpenSCAD reads them. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tandem_hardware.bom import Part
from tandem_hardware.case_layout import CASES, POST, STANDOFF, layout, measures


def _text(value: object) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, float | int):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    if isinstance(value, Sequence):
        return f"[{', '.join(_text(one) for one in value)}]"
    raise TypeError(value)


def layout_scad(parts: Mapping[str, Part], told: Mapping[str, Any] | None = None) -> str:
    """All builds."""
    told = measures() if told is None else told
    printed = told["print"]
    lines = [
        "// Made by ./kit hardware of layout.toml and ../bom.csv: change those. mm.",
        *(
            f"{name} = {_text(value)};"
            for name, value in (
                ("wall", printed["wall_mm"]), ("clearance", printed["clearance_mm"]), ("lid_gap", printed["lid_gap_mm"]),
                ("lip", printed["lip_mm"]), ("rib", printed["rib_mm"]), ("slot", told["air"]["slot_mm"]), ("post", POST),
                ("standoff", STANDOFF), ("lug", told["strap"]["lug_mm"]), ("strap_slot", told["strap"]["slot_mm"]),
            )
        ),
        "// [outer, [[id, kind, at, size]], posts, Pi's holes, LED, inlets' x, z, outlets' x, y, Ethernet, charge]",
        "function layout(build) =",
    ]  # fmt: skip
    for build in CASES:
        of = layout(parts, build, told)
        boxes = [[one.id, one.kind, one.at, one.size] for one in of.parts]
        rest = (
            of.posts, of.pi_holes, of.led, of.inlets, of.inlet_z, of.outlets, of.outlet_y, of.ethernet, of.charge
        )  # fmt: skip
        lines.append(f'  build == "{build}" ? [{_text(of.outer)}, [')
        lines += [f"    {_text(box)}," for box in boxes]
        lines.append("  ], " + ",\n  ".join(_text(one) for one in rest) + "] :")
    lines.append('  assert(false, str("no build ", build));')
    return "\n".join(lines) + "\n"
