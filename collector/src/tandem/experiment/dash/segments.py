"""Where the segments of one representation are: SegmentTemplate, SegmentList, SegmentBase and how they are inherited
(ISO/IEC 23009-1, 5.3.9). Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.parse import urljoin

from tandem.experiment.dash.attributes import byte_range, refuse, signed, whole
from tandem.experiment.dash.model import Resource, Segment
from tandem.experiment.dash.templates import Filled, prepare
from tandem.experiment.dash.xml_reading import Element, MpdError

MOST_SEGMENTS = 20_000
"""Of one representation: five hours of 1 s. A timeline of one line can ask for 10^18."""

_KINDS = ("SegmentTemplate", "SegmentList", "SegmentBase")


@dataclass(frozen=True, slots=True)
class Place:
    """What a representation's segments depend on. ``base``: its absolute BaseURL. ``duration_s`` None: the period's is not known."""

    base: str
    representation: str
    bandwidth: int
    start_s: float
    duration_s: float | None


@dataclass(frozen=True, slots=True)
class Located:
    """``index`` is set instead of ``segments`` where a sidx must be read."""

    initialization: Resource | None
    segments: tuple[Segment, ...]
    index: Resource | None = None


def inherited(levels: Sequence[Element]) -> Element | None:
    """The segment information that holds for the last of ``levels`` (Period, AdaptationSet, Representation): of the kind that the
    lowest level has, attributes and children of the levels above where the lower ones say nothing."""
    merged: Element | None = None
    for level in levels:
        own = next((found for kind in _KINDS if (found := level.first(kind)) is not None), None)
        if own is None:
            continue
        beside = level.first("SegmentBase")
        if beside is not None and own.first("Initialization") is None:
            # Manifests of 2011 have the initialization in a SegmentBase beside the SegmentList.
            own = Element(own.name, own.line, own.attributes, [*beside.all("Initialization"), *own.children])
        if merged is None or merged.name != own.name:
            merged = own
            continue
        names = {child.name for child in own.children}
        kept = [child for child in merged.children if child.name not in names]
        merged = Element(own.name, own.line, {**merged.attributes, **own.attributes}, [*kept, *own.children])
    return merged


def locate(information: Element | None, place: Place) -> Located:
    """The segments; MpdError when the information contradicts itself or breaks a bound."""
    if information is None:
        return Located(None, (_whole_file(place, None),))
    if information.name == "SegmentTemplate":
        return _template(information, place)
    if information.name == "SegmentList":
        return _list(information, place)
    index = byte_range(information, "indexRange")
    initialization = _initialization(information, place)
    if index is None:
        return Located(initialization, (_whole_file(place, information),))
    return Located(initialization, (), Resource(place.base, index))


def _whole_file(place: Place, information: Element | None) -> Segment:
    if place.duration_s is None:
        where = f"line {information.line}: " if information else ""
        raise MpdError(
            f"{where}representation {place.representation[:40]!r}: one segment, and its duration is not said"
        )
    return Segment(place.start_s, place.duration_s, Resource(place.base))


def _initialization(information: Element, place: Place) -> Resource | None:
    element = information.first("Initialization")
    if element is None:
        return None
    return Resource(_url(place, element.attributes.get("sourceURL")), byte_range(element, "range"))


def _url(place: Place, reference: str | None) -> str:
    try:
        return urljoin(place.base, reference or "")
    except ValueError as error:
        raise MpdError(f"{str(reference)[:80]!r} is no URL: {error}") from error


def _template(information: Element, place: Place) -> Located:
    media = information.attributes.get("media")
    if not media:
        raise refuse(information, "no media")
    first = whole(information, "startNumber", 1) or 0
    last = whole(information, "endNumber")

    name_of = _prepared(media, place)

    def url(index: int, time: int | None) -> Resource:
        return Resource(name_of(first + index, time))

    start = information.attributes.get("initialization")
    initialization = (
        _initialization(information, place) if start is None else Resource(_prepared(start, place)(None, None))
    )
    most = None if last is None else max(0, last - first + 1)
    return Located(initialization, _timed(information, place, url, most))


def _prepared(template: str, place: Place) -> Filled:
    return prepare(template, place.representation, place.bandwidth, lambda text: _url(place, text))


def _list(information: Element, place: Place) -> Located:
    listed = information.all("SegmentURL")
    if not listed:
        raise refuse(information, "no SegmentURL")

    def url(index: int, _time: int | None) -> Resource:
        element = listed[index]
        return Resource(_url(place, element.attributes.get("media")), byte_range(element, "mediaRange"))

    return Located(_initialization(information, place), _timed(information, place, url, len(listed)))


def _timed(
    information: Element, place: Place, url: Callable[[int, int | None], Resource], most: int | None
) -> tuple[Segment, ...]:
    """Segments with their times, by SegmentTimeline or by @duration; ``most``: so many there are at most."""
    scale = whole(information, "timescale", 1, least=1) or 1
    offset = whole(information, "presentationTimeOffset", 0) or 0
    timeline = information.first("SegmentTimeline")
    each = whole(information, "duration", least=1)
    if timeline is not None:
        times = _timeline(timeline, place, scale, offset)
    elif each is not None:
        times = _equal(information, place, scale, offset, each, most)
    elif place.duration_s is not None:
        # neither a timeline nor a duration: one segment, as long as the period
        times = [(offset, max(1, round(place.duration_s * scale)))]
    else:
        raise refuse(information, "neither duration nor SegmentTimeline")
    if most is not None:
        times = times[:most]
    return tuple(
        Segment(place.start_s + (time - offset) / scale, length / scale, url(index, time))
        for index, (time, length) in enumerate(times)
    )


def _equal(
    information: Element, place: Place, scale: int, offset: int, each: int, most: int | None
) -> list[tuple[int, int]]:
    whole_period = None if place.duration_s is None else place.duration_s * scale
    if whole_period is not None:
        # a hair less than a whole segment more is none: durations are told with few digits
        count = max(1, math.ceil(whole_period / each - 1e-6))
    elif most is not None:
        count = most
    else:
        raise refuse(information, "the period's duration is not said")
    if most is not None:
        count = min(count, most)
    if count > MOST_SEGMENTS:
        raise refuse(information, f"{count} segments, more than {MOST_SEGMENTS}")
    times = [(offset + index * each, each) for index in range(count)]
    if whole_period is not None and times:
        start, length = times[-1]
        times[-1] = (start, max(1, min(length, round(whole_period) - (start - offset))))
    return times


def _timeline(timeline: Element, place: Place, scale: int, offset: int) -> list[tuple[int, int]]:
    rows = timeline.all("S")
    if not rows:
        raise refuse(timeline, "no S")
    times: list[tuple[int, int]] = []
    end = None if place.duration_s is None else offset + place.duration_s * scale
    now = 0
    for position, row in enumerate(rows):
        if whole(row, "k", 1) != 1:
            raise refuse(row, "k: segment sequences are not read")
        length = whole(row, "d", least=1)
        if length is None:
            raise refuse(row, "no d")
        start = whole(row, "t", now) or 0
        if start < now:
            raise refuse(row, f"t={start} is before the end of the one before ({now})")
        repeats = signed(row, "r", 0)
        until = end if repeats >= 0 else _until(rows, position, end)
        count = repeats + 1
        if until is not None:
            fit = max(0, math.ceil((until - start) / length - 1e-6))
            count = fit if repeats < 0 else min(count, fit)
        if len(times) + count > MOST_SEGMENTS:
            raise refuse(row, f"more than {MOST_SEGMENTS} segments")
        times += [(start + index * length, length) for index in range(count)]
        now = start + count * length
        if until is not None and now > until and count:
            # what does not fit any more is cut
            now = math.ceil(until)
            times[-1] = (times[-1][0], max(1, now - times[-1][0]))
    return times


def _until(rows: list[Element], position: int, end: float | None) -> float:
    """Where an S with a negative r ends: at the next one's t, or at the period's ``end``."""
    row = rows[position]
    if position + 1 < len(rows):
        following = whole(rows[position + 1], "t")
        if following is None:
            raise refuse(row, "r is negative, and the S after it has no t")
        return following if end is None else min(following, end)
    if end is None:
        raise refuse(row, "r is negative, and the period's duration is not said")
    return end
