"""Triangles of a printed part: OpenSCAD's text made binary STL in one order, and what they enclose. Pure.

Binary STL: 80 bytes of anything, a little-endian count, then per triangle its normal, three corners (32-bit floats, mm) and two
bytes of nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Triangles = NDArray[np.float32]
"""Shape (n, 3, 3): triangle, corner, x y z; mm."""

_CORNER = re.compile(rb"vertex\s+(\S+)\s+(\S+)\s+(\S+)")
_HEADER = b"Tandem: made by ./kit hardware".ljust(80)
_RECORD = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("nothing", "<u2")])


def of_text(text: bytes) -> Triangles:
    """OpenSCAD's. ValueError: no triangles."""
    found = np.array(_CORNER.findall(text), dtype=np.float32)
    if not len(found) or len(found) % 3:
        raise ValueError("no triangles")
    return found.reshape(-1, 3, 3)


def pack(triangles: Triangles) -> bytes:
    """Binary, in one order whatever the order was: each triangle from its least corner on, the least first."""
    turned = [
        min((*t,), (*t[1:], t[0]), (*t[2:], *t[:2])) for t in (tuple(map(tuple, one)) for one in triangles.tolist())
    ]
    ordered = np.array(sorted(turned), dtype=np.float32)
    records = np.zeros(len(ordered), dtype=_RECORD)
    records["corners"] = ordered
    normal = np.cross(ordered[:, 1] - ordered[:, 0], ordered[:, 2] - ordered[:, 0])
    length = np.linalg.norm(normal, axis=1, keepdims=True)
    records["normal"] = normal / np.where(length > 0, length, 1)
    return _HEADER + np.uint32(len(ordered)).tobytes() + records.tobytes()


def unpack(raw: bytes) -> Triangles:
    """Binary STL. ValueError: it is none."""
    if len(raw) < 84:
        raise ValueError("shorter than a header")
    count = int(np.frombuffer(raw, "<u4", 1, 80)[0])
    if count == 0 or len(raw) != 84 + count * _RECORD.itemsize:
        raise ValueError(f"{count} triangles do not take {len(raw)} bytes")
    return np.array(np.frombuffer(raw, _RECORD, count, 84)["corners"])


@dataclass(frozen=True, slots=True)
class Body:
    """``low``, ``high``: corners of the box around it, mm; ``open_edges``: edges that do not belong to just two triangles."""

    low: tuple[float, float, float]
    high: tuple[float, float, float]
    volume_mm3: float
    area_mm2: float
    open_edges: int


def body(triangles: Triangles) -> Body:
    """What they enclose."""
    exact = triangles.astype(np.float64)
    cross = np.cross(exact[:, 1] - exact[:, 0], exact[:, 2] - exact[:, 0])
    volume = float(np.einsum("ij,ij->i", exact[:, 0], cross).sum() / 6)
    edges: Counter[tuple[tuple[float, ...], tuple[float, ...]]] = Counter()
    for a, b, c in triangles.tolist():
        for one, other in ((a, b), (b, c), (c, a)):
            edges[(tuple(one), tuple(other))] += 1
    # Each edge is passed once in each direction.
    unpaired = sum(1 for (one, other), count in edges.items() if edges[(other, one)] != count)
    low, high = exact.min(axis=(0, 1)).tolist(), exact.max(axis=(0, 1)).tolist()
    return Body(tuple(low), tuple(high), volume, float(np.linalg.norm(cross, axis=1).sum() / 2), unpaired)


def same_body(kept: bytes, fresh: bytes) -> str | None:
    """By what they enclose: a release of OpenSCAD divides surfaces in another way. A tenth of a mm in a box's measure, a thousandth
    in volume and area are told."""
    try:
        before, now = body(unpack(kept)), body(unpack(fresh))
    except ValueError as error:
        return f"no STL: {error}"
    for axis, one, other in zip("xyzxyz", (*before.low, *before.high), (*now.low, *now.high), strict=True):
        if abs(one - other) > 0.1:
            return f"{axis} {one:.1f} mm, now {other:.1f} mm"
    for what, unit, one, other in (
        ("volume", "cm3", before.volume_mm3 / 1e3, now.volume_mm3 / 1e3),
        ("surface", "cm2", before.area_mm2 / 1e2, now.area_mm2 / 1e2),
    ):
        if abs(one - other) > 1e-3 * abs(one):
            return f"{what} {one:.1f} {unit}, now {other:.1f} {unit}"
    return None
