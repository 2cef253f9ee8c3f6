"""An MPD (ISO/IEC 23009-1) into a ``Presentation``: periods, BaseURLs, inheritance, segments (5.3.9) and the segment index box of
SegmentBase (ISO/IEC 14496-12, 8.16.3). Pure: bytes in, values out, MpdError otherwise.

Stored presentations only: type="dynamic" (live) is refused, and so are remote elements (xlink).
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from urllib.parse import urljoin

from tandem.experiment.dash.mpd_xml import ByteRange, Element, MpdError, read

# A presentation as it is played. Times in seconds, from its start.


@dataclass(frozen=True, slots=True)
class Resource:
    """What one request fetches. ``range`` None: the whole of ``url``, which is absolute."""

    url: str
    range: ByteRange | None = None


@dataclass(frozen=True, slots=True)
class Segment:
    start_s: float
    duration_s: float
    media: Resource


@dataclass(frozen=True, slots=True)
class Representation:
    """One quality. ``index``: a segment index (sidx) that must be read first, and then ``segments`` is empty (``with_index``).
    ``width``, ``height``, ``frame_rate``, ``codecs``: None where the MPD does not say."""

    id: str
    bandwidth_bit_per_s: int
    width: int | None
    height: int | None
    frame_rate: float | None
    codecs: str | None
    initialization: Resource | None
    segments: tuple[Segment, ...]
    index: Resource | None = None


@dataclass(frozen=True, slots=True)
class Adaptation:
    """Representations of the same content, by rising bandwidth. ``content``: video, audio, text …, None where it is not said."""

    content: str | None
    representations: tuple[Representation, ...]


@dataclass(frozen=True, slots=True)
class Period:
    """``duration_s`` None: the last one of a presentation that does not say how long it is."""

    start_s: float
    duration_s: float | None
    adaptations: tuple[Adaptation, ...]

    @property
    def video(self) -> Adaptation:
        """What is played: the first adaptation of video, or the first that does not say what it is, or the first."""
        by_content = {a.content: a for a in reversed(self.adaptations)}
        return by_content.get("video") or by_content.get(None) or self.adaptations[0]


@dataclass(frozen=True, slots=True)
class Presentation:
    """At least one period with at least one adaptation with at least one representation."""

    duration_s: float | None
    periods: tuple[Period, ...]


# Templates of URLs.

_IDENTIFIER = re.compile(r"\$([A-Za-z]*)(%[^$]{0,16})?\$")
_WIDTH = re.compile(r"%0([0-9]{1,2})d\Z")
_WIDEST = 32
_FIRST_MARK, _MARKS = 0xE000, 16
_MARK = re.compile(f"([{chr(_FIRST_MARK)}-{chr(_FIRST_MARK + _MARKS - 1)}])")
"""Stand in for numbers and times while the rest is resolved: characters of the private use area, which no URL has."""

Filled = Callable[[int | None, int | None], str]
"""From number and time (None: it has none) to the text; MpdError when the one that is needed is None."""


def prepare(template: str, representation: str, bandwidth: int, resolve: Callable[[str], str]) -> Filled:
    """``template`` with ``$RepresentationID$``, ``$Bandwidth$`` and ``$$`` filled in and ``resolve`` applied, once; ``$Number$`` and
    ``$Time$`` are left for each segment (they and the bandwidth also as ``$Number%05d$``). Digits cannot change how a URL is taken apart;
    an id can. MpdError for any other identifier and for a lone ``$``."""

    def wrong(what: str) -> MpdError:
        return MpdError(f"template {template[:80]!r}: {what}")

    if _MARK.search(template + representation):
        raise wrong("characters that no URL has")
    if "$" in _IDENTIFIER.sub("", template):
        raise wrong("a $ without its partner")
    widths: list[tuple[str, int]] = []

    def width(form: str | None) -> int:
        match = _WIDTH.match(form or "%01d")
        if match is None or not 1 <= int(match[1]) <= _WIDEST:
            raise wrong(f"the format {form!r} is not %0[1 to {_WIDEST}]d")
        return int(match[1])

    def placed(match: re.Match[str]) -> str:
        name, form = match[1], match[2]
        if name in ("", "RepresentationID"):
            if form is not None:
                raise wrong(f"{match[0]} takes no format")
            return representation if name else "$"
        if name == "Bandwidth":
            return f"{bandwidth:0{width(form)}d}"
        if name not in ("Number", "Time") or len(widths) >= _MARKS:
            raise wrong(f"{match[0]} has no value here")
        widths.append((name, width(form)))
        return chr(_FIRST_MARK + len(widths) - 1)

    parts = _MARK.split(resolve(_IDENTIFIER.sub(placed, template)))

    def filled(number: int | None, time: int | None) -> str:
        pieces = list(parts)
        for place in range(1, len(parts), 2):
            name, digits = widths[ord(parts[place]) - _FIRST_MARK]
            value = number if name == "Number" else time
            if value is None:
                raise wrong(f"${name}$ has no value here")
            pieces[place] = f"{value:0{digits}d}"
        return "".join(pieces)

    return filled


# Where the segments are.

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

    def url(self, reference: str | None) -> str:
        """``reference`` upon the base; MpdError when it is no URL."""
        try:
            return urljoin(self.base, reference or "")
        except ValueError as error:
            raise MpdError(f"{str(reference)[:80]!r} is no URL: {error}") from error

    def prepared(self, template: str) -> Filled:
        return prepare(template, self.representation, self.bandwidth, self.url)


Located = tuple[Resource | None, tuple[Segment, ...], Resource | None]
"""A representation's initialization, segments and index; one of the last two is there."""


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
        if merged is not None and merged.name == own.name:
            names = {child.name for child in own.children}
            kept = [child for child in merged.children if child.name not in names]
            own = Element(own.name, own.line, {**merged.attributes, **own.attributes}, [*kept, *own.children])
        merged = own
    return merged


def locate(information: Element | None, place: Place) -> Located:
    """The segments; MpdError when the information contradicts itself or breaks a bound."""
    if information is None:
        return None, (_whole_file(place, None),), None
    if information.name == "SegmentTemplate":
        return _template(information, place)
    if information.name == "SegmentList":
        return _list(information, place)
    index = information.byte_range("indexRange")
    initialization = _initialization(information, place)
    if index is None:
        return initialization, (_whole_file(place, information),), None
    return initialization, (), Resource(place.base, index)


def _whole_file(place: Place, information: Element | None) -> Segment:
    if place.duration_s is None:
        where = f"line {information.line}: " if information else ""
        what = f"representation {place.representation[:40]!r}: one segment, and its duration is not said"
        raise MpdError(where + what)
    return Segment(place.start_s, place.duration_s, Resource(place.base))


def _initialization(information: Element, place: Place) -> Resource | None:
    element = information.first("Initialization")
    if element is None:
        return None
    return Resource(place.url(element.attributes.get("sourceURL")), element.byte_range("range"))


def _template(information: Element, place: Place) -> Located:
    media, start = information.attributes.get("media"), information.attributes.get("initialization")
    if not media:
        raise information.refuse("no media")
    first, last = information.whole("startNumber", 1) or 0, information.whole("endNumber")
    name_of = place.prepared(media)
    initialization = (
        _initialization(information, place) if start is None else Resource(place.prepared(start)(None, None))
    )
    most = None if last is None else max(0, last - first + 1)
    segments = _timed(information, place, lambda index, time: Resource(name_of(first + index, time)), most)
    return initialization, segments, None


def _list(information: Element, place: Place) -> Located:
    listed = information.all("SegmentURL")
    if not listed:
        raise information.refuse("no SegmentURL")

    def resource(index: int, _time: int | None) -> Resource:
        element = listed[index]
        return Resource(place.url(element.attributes.get("media")), element.byte_range("mediaRange"))

    return _initialization(information, place), _timed(information, place, resource, len(listed)), None


def _timed(
    information: Element, place: Place, resource: Callable[[int, int | None], Resource], most: int | None
) -> tuple[Segment, ...]:
    """Segments with their times, by SegmentTimeline or by @duration; ``most``: so many there are at most."""
    scale = information.whole("timescale", 1, least=1) or 1
    offset = information.whole("presentationTimeOffset", 0) or 0
    timeline = information.first("SegmentTimeline")
    each = information.whole("duration", least=1)
    if timeline is not None:
        times = _timeline(timeline, place, scale, offset)
    elif each is not None:
        times = _equal(information, place, scale, offset, each, most)
    elif place.duration_s is not None:
        # neither a timeline nor a duration: one segment, as long as the period
        times = [(offset, max(1, round(place.duration_s * scale)))]
    else:
        raise information.refuse("neither duration nor SegmentTimeline")
    return tuple(
        Segment(place.start_s + (time - offset) / scale, length / scale, resource(index, time))
        for index, (time, length) in enumerate(times[:most])
    )


def _equal(
    information: Element, place: Place, scale: int, offset: int, each: int, most: int | None
) -> list[tuple[int, int]]:
    whole_period = None if place.duration_s is None else place.duration_s * scale
    if whole_period is not None:
        # a hair less than a whole segment more is none: durations are given with few digits
        count = max(1, math.ceil(whole_period / each - 1e-6))
    elif most is not None:
        count = most
    else:
        raise information.refuse("the period's duration is not said")
    if most is not None:
        count = min(count, most)
    if count > MOST_SEGMENTS:
        raise information.refuse(f"{count} segments, more than {MOST_SEGMENTS}")
    times = [(offset + index * each, each) for index in range(count)]
    if whole_period is not None and times:
        start, length = times[-1]
        times[-1] = (start, max(1, min(length, round(whole_period) - (start - offset))))
    return times


def _timeline(timeline: Element, place: Place, scale: int, offset: int) -> list[tuple[int, int]]:
    rows = timeline.all("S")
    if not rows:
        raise timeline.refuse("no S")
    times: list[tuple[int, int]] = []
    end = None if place.duration_s is None else offset + place.duration_s * scale
    now = 0
    for position, row in enumerate(rows):
        if row.whole("k", 1) != 1:
            raise row.refuse("k: segment sequences are not read")
        length = row.whole("d", least=1)
        if length is None:
            raise row.refuse("no d")
        start = row.whole("t", now) or 0
        if start < now:
            raise row.refuse(f"t={start} is before the end of the one before ({now})")
        repeats = row.signed("r", 0)
        until = end if repeats >= 0 else _until(rows, position, end)
        count = repeats + 1
        if until is not None:
            fit = max(0, math.ceil((until - start) / length - 1e-6))
            count = fit if repeats < 0 else min(count, fit)
        if len(times) + count > MOST_SEGMENTS:
            raise row.refuse(f"more than {MOST_SEGMENTS} segments")
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
        following = rows[position + 1].whole("t")
        if following is None:
            raise row.refuse("r is negative, and the S after it has no t")
        return following if end is None else min(following, end)
    if end is None:
        raise row.refuse("r is negative, and the period's duration is not said")
    return end


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


# The presentation.

MOST_PERIODS = 100
MOST_REPRESENTATIONS = 500
"""Of the whole presentation."""
MOST_SEGMENTS_IN_ALL = 10 * MOST_SEGMENTS
_RESOLVES_TO_NOTHING = "urn:mpeg:dash:resolve-to-zero:2013"


def parse(document: bytes, url: str) -> Presentation:
    """The presentation that ``document``, fetched from ``url``, describes."""
    root = read(document)
    if root.name != "MPD":
        raise MpdError(f"line {root.line}: the root is {root.name[:40]!r}, no MPD")
    kind = root.attributes.get("type", "static")
    if kind == "dynamic":
        raise MpdError(f'line {root.line}: type="dynamic": a live presentation; only stored ones are played')
    if kind != "static":
        raise root.refuse(f"type={kind[:40]!r} is neither static nor dynamic")
    whole_s = root.duration_s("mediaPresentationDuration")
    base = _base(root, url)
    elements = [e for e in root.all("Period") if not _remote(e)]
    if not elements:
        raise MpdError(f"line {root.line}: no Period")
    if len(elements) > MOST_PERIODS:
        raise MpdError(f"line {root.line}: more than {MOST_PERIODS} periods")
    times = _times(elements, whole_s)
    periods = tuple(_period(e, base, start, long) for e, (start, long) in zip(elements, times, strict=True))
    sets = [a for p in periods for a in p.adaptations]
    if sum(len(a.representations) for a in sets) > MOST_REPRESENTATIONS:
        raise MpdError(f"more than {MOST_REPRESENTATIONS} representations")
    if sum(len(r.segments) for a in sets for r in a.representations) > MOST_SEGMENTS_IN_ALL:
        raise MpdError(f"more than {MOST_SEGMENTS_IN_ALL} segments")
    last_start, last_long = times[-1]
    return Presentation(whole_s if last_long is None else last_start + last_long, periods)


def _times(elements: Sequence[Element], whole_s: float | None) -> list[tuple[float, float | None]]:
    """Start and duration of each period: what it says, else what its neighbours leave for it (5.3.2.1)."""
    starts: list[float] = []
    for index, element in enumerate(elements):
        start = element.duration_s("start")
        if start is None and index == 0:
            start = 0.0
        elif start is None:
            before = elements[index - 1].duration_s("duration")
            if before is None:
                raise element.refuse("no start, and the period before has no duration")
            start = starts[-1] + before
        if starts and start < starts[-1]:
            raise element.refuse(f"starts at {start:g} s, before the period in front of it")
        starts.append(start)
    times: list[tuple[float, float | None]] = []
    for index, element in enumerate(elements):
        until = starts[index + 1] if index + 1 < len(starts) else whole_s
        long = element.duration_s("duration")
        if until is not None:
            left = max(0.0, until - starts[index])
            long = left if long is None else min(long, left)
        times.append((starts[index], long))
    return times


def _period(element: Element, base: str, start_s: float, long_s: float | None) -> Period:
    base = _base(element, base)
    sets = [e for e in element.all("AdaptationSet") if not _remote(e)]
    adaptations = tuple(
        Adaptation(_content(e), representations)
        for e in sets
        if (representations := _representations(element, e, _base(e, base), start_s, long_s))
    )
    if not adaptations:
        raise element.refuse("no representation")
    return Period(start_s, long_s, adaptations)


def _representations(
    period: Element, adaptation: Element, base: str, start_s: float, long_s: float | None
) -> tuple[Representation, ...]:
    elements = adaptation.all("Representation")
    if len(elements) > MOST_REPRESENTATIONS:
        raise adaptation.refuse(f"more than {MOST_REPRESENTATIONS} representations")
    made, segments = [], 0
    for element in elements:
        made.append(_representation(period, adaptation, element, base, start_s, long_s))
        segments += len(made[-1].segments)
        if segments > MOST_SEGMENTS_IN_ALL:
            raise adaptation.refuse(f"more than {MOST_SEGMENTS_IN_ALL} segments")
    if len({r.id for r in made}) < len(made):
        raise adaptation.refuse("two representations with the same id")
    return tuple(sorted(made, key=lambda r: r.bandwidth_bit_per_s))


def _representation(
    period: Element, adaptation: Element, element: Element, base: str, start_s: float, long_s: float | None
) -> Representation:
    name = element.attributes.get("id")
    bandwidth = element.whole("bandwidth", least=1)
    if not name:
        raise element.refuse("no id")
    if bandwidth is None:
        raise element.refuse("no bandwidth")
    # What the adaptation set says holds for its representations (5.3.7).
    common = Element(element.name, element.line, {**adaptation.attributes, **element.attributes})
    place = Place(_base(element, base), name, bandwidth, start_s, long_s)
    initialization, segments, index = locate(inherited([period, adaptation, element]), place)
    if not segments and index is None:
        raise element.refuse("no segment")
    return Representation(
        id=name,
        bandwidth_bit_per_s=bandwidth,
        width=common.whole("width"),
        height=common.whole("height"),
        frame_rate=common.frame_rate(),
        codecs=common.attributes.get("codecs"),
        initialization=initialization,
        segments=segments,
        index=index,
    )


def _content(adaptation: Element) -> str | None:
    """What an adaptation set holds: by contentType, else by the MIME type of the set, its representations or a ContentComponent."""
    for element in (adaptation, *adaptation.all("ContentComponent"), *adaptation.all("Representation")):
        content = element.attributes.get("contentType") or element.attributes.get("mimeType", "").partition("/")[0]
        if content:
            return content
    return None


def _base(element: Element, base: str) -> str:
    """The BaseURL of ``element`` upon that of the level above; of several the first, the others are alternatives."""
    own = element.first("BaseURL")
    if own is None:
        return base
    try:
        return urljoin(base, own.text)
    except ValueError as error:
        raise own.refuse(f"{own.text[:80]!r} is no URL: {error}") from error


def _remote(element: Element) -> bool:
    """Whether ``element`` is a link to nothing; MpdError when it is a link to something, which is not fetched."""
    link = element.attributes.get("href")
    if link is None or link == _RESOLVES_TO_NOTHING:
        return link is not None
    raise element.refuse(f"xlink:href={link[:80]!r}: remote elements are not fetched")
