"""What is made of the case's sources: layout.scad, what is printed, pictures, and the table of sizes in its README."""

from __future__ import annotations

import io
from functools import cache, partial
from pathlib import Path

from tandem_hardware import bom, stl
from tandem_hardware.blocks import with_blocks
from tandem_hardware.case_layout import CASES, Layout, chimney_mm2, layout, measures
from tandem_hardware.case_render import FOLDER, PICTURES, picture, printed
from tandem_hardware.case_scad import layout_scad
from tandem_hardware.product import Product

PRINTED = ("base", "lid")
PICTURED = "standard"
"""The build of the assembly guide's pictures; the others have ``assembled`` only."""
LEVELS, SHARE = 40, 0.002
"""Two pictures show the same when no more than this share of their pixels differs by more than so many levels of 255."""


@cache
def layouts() -> dict[str, Layout]:
    """By build."""
    parts = bom.load()
    return {build: layout(parts, build) for build in CASES}


@cache
def _stl(build: str, part: str) -> bytes:
    return printed(build, part)


def difference(kept: bytes, fresh: bytes) -> float:
    """The share of pixels that differ; 1.0 when the sizes do. ValueError: no picture."""
    from PIL import Image, ImageChops

    try:
        before, now = (Image.open(io.BytesIO(one)).convert("RGB") for one in (kept, fresh))
    except OSError as error:
        raise ValueError(f"no picture: {error}") from error
    if before.size != now.size:
        return 1.0
    most = ImageChops.difference(before, now).split()
    bright = ImageChops.lighter(ImageChops.lighter(most[0], most[1]), most[2])
    return sum(bright.histogram()[LEVELS:]) / (before.size[0] * before.size[1])


def same_picture(kept: bytes, fresh: bytes) -> str | None:
    """By what they show: another renderer smooths edges in another way."""
    try:
        share = difference(kept, fresh)
    except ValueError as error:
        return str(error)
    return None if share <= SHARE else f"{share:.1%} of its pixels differ"


def printed_g(build: str) -> float:
    """What base and lid weigh, of their volume; an estimate: how much of a wall is filled is the slicer's."""
    told = measures()["print"]
    volume = sum(stl.body(stl.unpack(_stl(build, part))).volume_mm3 for part in PRINTED)
    return float(volume / 1000 * told["density_g_cm3"] * told["solid_share"])


def _sizes() -> str:
    air = measures()["air"]
    lines = [
        "| build | outside, without the strap's lugs | between the modems | printed | air: in, out, needed without a fan |",
        "|---|---|---|---|---|",
    ]
    for build, of in layouts().items():
        left, right = of.kind("modem")
        need = chimney_mm2(heat_w(build), of.outer[2], air["rise_k"])
        fan = " (it has a fan)" if of.kind("fan") else ""
        lines.append(
            f"| {build} | {of.outer[0]:.0f} × {of.outer[1]:.0f} × {of.outer[2]:.0f} mm | {right.at[0] - left.end[0]:.0f} mm"
            f" | ≈{printed_g(build):.0f} g | {of.inlet_mm2:.0f}, {of.outlet_mm2:.0f}, {need:.0f} mm²{fan} |"
        )
    return "\n".join(lines)


def heat_w(build: str) -> float:
    """What the parts in the case turn into heat while a run is measured: all of their typical power."""
    parts = bom.load()
    return sum(one.quantities.get(build, 0) * (one.typical_w or 0.0) for one in parts.values())


def _readme() -> bytes:
    path = FOLDER / "README.md"
    return with_blocks(path, path.read_text(encoding="utf-8"), {"sizes": _sizes}).encode()


def products() -> list[Product]:
    """Each file."""
    case = Path("case")
    made = [Product(case / "layout.scad", lambda: layout_scad(bom.load()).encode())]
    made += [
        Product(case / "stl" / f"{build}-{part}.stl", partial(_stl, build, part), stl.same_body, drawn=True)
        for build in CASES
        for part in PRINTED
    ]
    made += [
        Product(case / "pictures" / f"{name}.png", partial(_picture, name, PICTURED), same_picture, drawn=True)
        for name in PICTURES
    ]
    made += [
        Product(
            case / "pictures" / f"assembled-{build}.png",
            partial(_picture, "assembled", build),
            same_picture,
            drawn=True,
        )
        for build in CASES
        if build != PICTURED
    ]
    return [*made, Product(case / "README.md", _readme, drawn=True)]


def _picture(name: str, build: str) -> bytes:
    return picture(name, layouts()[build])
