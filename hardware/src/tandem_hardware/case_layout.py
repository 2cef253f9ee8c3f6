"""Where each part lies in the case, of ``hardware/case/layout.toml`` and the parts' sizes in bom.csv. Pure. mm.

x along the box, y from the front wall to the back, z up; the origin is the base's outer corner, without the strap's lugs.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tandem_hardware.bom import Part
from tandem_hardware.errors import SourceError
from tandem_hardware.places import HARDWARE

SOURCE = HARDWARE / "case" / "layout.toml"
CASES = ("paper", "standard", "5g")
HOLES = (58.0, 49.0)
"""Between the mounting holes of every Pi with 85 by 56 mm; 3.5 mm from the edges (raspberrypi.com, mechanical drawings)."""
HOLE_EDGE = 3.5
STANDOFF = 5.0
POST = 7.0
LED_COLLAR = 9.0
FLAT_OFF = 0.5
"""Of an antenna on the floor, from the end wall."""

Vector = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Box:
    """A part in its place: ``id`` of the BOM, ``kind`` of drawing."""

    id: str
    kind: str
    at: Vector
    size: Vector

    @property
    def end(self) -> Vector:
        """The corner opposite to ``at``."""
        return (self.at[0] + self.size[0], self.at[1] + self.size[1], self.at[2] + self.size[2])


@dataclass(frozen=True, slots=True)
class Layout:
    """One build's case."""

    build: str
    outer: Vector
    """With the lid, without the lugs."""
    lug: float
    parts: tuple[Box, ...]
    posts: tuple[tuple[float, float], ...]
    pi_holes: tuple[tuple[float, float], ...]
    led: tuple[float, float]
    inlets: tuple[float, ...]
    """x of the front wall's slots."""
    inlet_z: tuple[float, float]
    outlets: tuple[float, ...]
    """x of the lid's slots."""
    outlet_y: tuple[float, float]
    ethernet: tuple[float, float, float, float]
    """x, z, width, height of the front wall's cut-out."""
    charge: tuple[float, float, float, float]
    """x, z, width, height of the back wall's cut-out."""
    slot: float

    @property
    def inlet_mm2(self) -> float:
        """Open area of the front wall's slots."""
        return len(self.inlets) * self.slot * (self.inlet_z[1] - self.inlet_z[0])

    @property
    def outlet_mm2(self) -> float:
        """Open area of the lid's slots."""
        return len(self.outlets) * self.slot * (self.outlet_y[1] - self.outlet_y[0])

    def kind(self, kind: str) -> list[Box]:
        """The parts of a kind."""
        return [one for one in self.parts if one.kind == kind]


def measures() -> dict[str, Any]:
    """layout.toml."""
    with SOURCE.open("rb") as file:
        return tomllib.load(file)


def chimney_mm2(heat_w: float, height_mm: float, rise_k: float) -> float:
    """Open area that carries ``heat_w`` away by the air's own rise: P = rho c A v dT with v = 0.6 sqrt(2 g h dT / T), T 300 K."""
    speed = 0.6 * math.sqrt(2 * 9.81 * height_mm / 1000 * rise_k / 300)
    return heat_w / (1.2 * 1005 * speed * rise_k) * 1e6


def _size(parts: Mapping[str, Part], build: str, id_: str) -> Vector:
    part = parts.get(id_)
    if part is None or (build not in part.quantities):
        raise SourceError(f"layout.toml: build {build} has no {id_!r} in bom.csv")
    if part.length_mm is None or part.width_mm is None or part.height_mm is None:
        raise SourceError(f"bom.csv:{part.line}: {id_} has no size, and the case holds it")
    return part.length_mm, part.width_mm, part.height_mm


def layout(parts: Mapping[str, Part], build: str, told: Mapping[str, Any] | None = None) -> Layout:
    """Of one build. SourceError: a part without size, or one that the build does not have."""
    told = measures() if told is None else told
    names, wall, gap = told["build"][build], told["print"]["wall_mm"], told["print"]["clearance_mm"]
    clear, air = told["clear"], told["air"]
    size = {role: _size(parts, build, id_) for role, id_ in names.items()}
    modem, pi, battery = size["modem"], size["pi"], size["battery"]
    hub, antenna, fan = size.get("hub"), size.get("antenna"), size.get("fan")
    air_above = (fan[2] if fan else 0.0) + 2 * gap + told["print"]["lip_mm"]
    high = max(
        modem[1] + 2 * gap + told["print"]["lip_mm"], STANDOFF + pi[2] + air_above,
        max(battery[2], hub[2] if hub else 0.0) + air_above, 2 * antenna[1] + 2 * gap if antenna and fan else 0.0,
    )  # fmt: skip
    # An end of the box: antennas on the wall, free space, the modem on edge; a stick is its own antenna: stick, free space.
    # The antenna that lies flat reaches further in than the one on the wall.
    flat = antenna[1] + FLAT_OFF if antenna else 0.0
    end = max(modem[2] + clear["antenna_mm"] + 2 * gap, flat + clear["antenna_mm"])
    front = pi[0] + clear["plugs_mm"] + (hub[0] + 2 * gap if hub else 0.0)
    back = battery[0] + clear["battery_plugs_mm"]
    middle = max(front, back) + 2 * gap
    row_front = clear["side_plug_mm"] + max(pi[1], hub[1] if hub else 0.0)
    deep = row_front + told["print"]["rib_mm"] + 4 * gap + battery[1]
    outer = (middle + 2 * end + 2 * wall, deep + 2 * wall, high + 2 * wall)
    x0, y0, z0 = wall + end + gap, wall, wall
    boxes = [
        Box(names["pi"], "pi", (x0, y0 + clear["side_plug_mm"], z0 + STANDOFF), pi),
        Box(names["battery"], "battery", (x0, outer[1] - wall - gap - battery[1], z0), battery),
    ]
    if hub:
        boxes.append(
            Box(names["hub"], "hub", (x0 + pi[0] + clear["plugs_mm"] + gap, y0 + clear["side_plug_mm"], z0), hub)
        )
    if fan:
        over = (x0 + (pi[0] - fan[0]) / 2, y0 + clear["side_plug_mm"] + (pi[1] - fan[1]) / 2, outer[2] - wall - fan[2])
        boxes.append(Box(names["fan"], "fan", over, fan))
    deep_at = clear["antenna_mm"] + gap if antenna else gap
    stood = (modem[2], modem[0], modem[1])
    ends = (wall + deep_at, outer[0] - wall - deep_at - modem[2])
    boxes += [Box(names["modem"], "modem", (at, (outer[1] - modem[0]) / 2, z0), stood) for at in ends]
    if antenna:
        boxes += _antennas(names["antenna"], antenna, outer, wall, 4 if fan else 2)
    pi_at = boxes[0].at
    led = (pi_at[0] + pi[0] + clear["plugs_mm"] / 2, pi_at[1] + pi[1] / 2)
    boxes.append(
        Box("status-led", "led", (led[0] - 2.5, led[1] - 2.5, outer[2] - 1.0 - 8.6), _size(parts, build, "status-led"))
    )
    holes = tuple(
        (pi_at[0] + HOLE_EDGE + i * HOLES[0], pi_at[1] + HOLE_EDGE + j * HOLES[1]) for i in (0, 1) for j in (0, 1)
    )
    near, far = wall + POST / 2, (outer[0] - wall - POST / 2, outer[1] - wall - POST / 2)
    plug_x = pi_at[0] + pi[0] + clear["plugs_mm"] / 2
    charge_x = x0 + battery[0] + clear["battery_plugs_mm"] - 20
    posts = (
        (near, near), (far[0], near), (near, far[1]), (far[0], far[1]),
        (plug_x + 15, near), (x0 + battery[0] + POST / 2 + gap, far[1]),
    )  # fmt: skip
    ethernet = (plug_x - 9, z0 + STANDOFF, 18.0, 16.0)
    charge = (charge_x + 4, z0 + 4, 13.0, 8.0)
    last = x0 + middle - 2 * gap
    pitch, slot = air["pitch_mm"], air["slot_mm"]
    inlets = tuple(
        x for n in range(int((last - x0) / pitch)) for x in [x0 + n * pitch]
        if not _near(x, slot, ethernet[0], ethernet[2]) and not _near(x, slot, posts[4][0] - POST / 2, POST)
    )  # fmt: skip
    above = boxes[2].end[0] if hub else pi_at[0] + pi[0]
    outlets = tuple(
        x for n in range(int((above - pi_at[0] - 4) / pitch)) for x in [pi_at[0] + 2 + n * pitch]
        if not _near(x, slot, led[0] - LED_COLLAR / 2, LED_COLLAR)
    )  # fmt: skip
    return Layout(
        build, outer, told["strap"]["lug_mm"], tuple(boxes), posts, holes, led, inlets, (z0 + 2, outer[2] - wall - 6),
        outlets, (pi_at[1] + 2, pi_at[1] + pi[1] - 2), ethernet, charge, slot,
    )  # fmt: skip


def _near(x: float, width: float, other: float, other_width: float) -> bool:
    return x < other + other_width + 2 and other < x + width + 2


def _antennas(id_: str, size: Vector, outer: Vector, wall: float, each: int) -> list[Box]:
    """On the inside of the end walls, then on the floor and the lid of the end: main and diversity do not lie in one plane."""
    long, broad, thin = size
    y, made = (outer[1] - long) / 2, []
    for left in (True, False):
        on_wall = wall if left else outer[0] - wall - thin
        flat_x = wall + FLAT_OFF if left else outer[0] - wall - broad - FLAT_OFF
        standing = range(each - 1 if each == 2 else 2)
        made += [Box(id_, "antenna", (on_wall, y, wall + 1 + n * broad), (thin, long, broad)) for n in standing]
        made.append(Box(id_, "antenna", (flat_x, y, wall), (broad, long, thin)))
        if each == 4:
            made.append(Box(id_, "antenna", (flat_x, y, outer[2] - wall - thin), (broad, long, thin)))
    return made
