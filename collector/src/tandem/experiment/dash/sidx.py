"""The segment index box (ISO/IEC 14496-12, 8.16.3) of a representation with SegmentBase. Pure."""

from __future__ import annotations

import struct
from dataclasses import replace

from tandem.experiment.dash.model import ByteRange, Representation, Resource, Segment
from tandem.experiment.dash.segments import MOST_SEGMENTS
from tandem.experiment.dash.xml_reading import MpdError


def with_index(representation: Representation, found: bytes, period_start_s: float) -> Representation:
    """``representation`` with the segments that ``found``, the bytes of its index range, lists. MpdError when they hold no sidx,
    or one that refers to further indexes."""
    index = representation.index
    if index is None or index.range is None:
        raise MpdError(f"representation {representation.id[:40]!r} has no index range")
    position = 0
    while True:
        if position + 8 > len(found):
            raise MpdError("index range: no sidx in it")
        size, kind = struct.unpack_from(">I4s", found, position)
        if size < 8 or position + size > len(found):
            raise MpdError(f"index range: a box {kind!r} of {size} bytes in {len(found) - position}")
        if kind == b"sidx":
            break
        position += size
    end = position + size
    segments = _segments(found[position + 8 : end], index.url, index.range.first + end, period_start_s)
    return replace(representation, segments=segments, index=None)


def _segments(body: bytes, url: str, anchor: int, start_s: float) -> tuple[Segment, ...]:
    """``anchor``: the first byte after the box, which offsets count from."""
    try:
        version, _id, scale = struct.unpack_from(">B3xII", body)
        earliest, first = struct.unpack_from(">QQ" if version else ">II", body, 12)
        at = 28 if version else 20
        (count,) = struct.unpack_from(">2xH", body, at)
        rows = [struct.unpack_from(">III", body, at + 4 + 12 * row) for row in range(count)]
    except struct.error as error:
        raise MpdError(f"sidx: cut short: {error}") from error
    if scale == 0:
        raise MpdError("sidx: a timescale of 0")
    if not 0 < count <= MOST_SEGMENTS:
        raise MpdError(f"sidx: {count} segments")
    segments, offset, time = [], anchor + first, 0
    for reference, duration, _access in rows:
        if reference >> 31:
            raise MpdError("sidx: an index of indexes is not read")
        size = reference & 0x7FFFFFFF
        if size == 0 or duration == 0:
            raise MpdError("sidx: a segment of no bytes or no duration")
        media = Resource(url, ByteRange(offset, offset + size - 1))
        segments.append(Segment(start_s + time / scale, duration / scale, media))
        offset, time = offset + size, time + duration
    del earliest  # the presentation begins with its first segment, whatever the media's clock says
    return tuple(segments)
