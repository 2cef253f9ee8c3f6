"""An MPD (ISO/IEC 23009-1) into a ``Presentation``: periods, BaseURLs, inheritance. Pure: bytes in, values out, MpdError otherwise.

Stored presentations only: type="dynamic" (live) is refused, and so are remote elements (xlink).
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urljoin

from tandem.experiment.dash.attributes import duration_s, frame_rate, refuse, whole
from tandem.experiment.dash.model import Adaptation, Period, Presentation, Representation
from tandem.experiment.dash.segments import MOST_SEGMENTS, Place, inherited, locate
from tandem.experiment.dash.xml_reading import Element, MpdError, read

MOST_PERIODS = 100
MOST_REPRESENTATIONS = 500
"""Of the whole presentation."""
MOST_SEGMENTS_IN_ALL = 10 * MOST_SEGMENTS
_LONGEST_S = 7 * 86400.0
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
        raise refuse(root, f"type={kind[:40]!r} is neither static nor dynamic")
    whole_s = _bounded(root, duration_s(root, "mediaPresentationDuration"))
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
        start = _bounded(element, duration_s(element, "start"))
        if start is None and index == 0:
            start = 0.0
        elif start is None:
            before = _bounded(elements[index - 1], duration_s(elements[index - 1], "duration"))
            if before is None:
                raise refuse(element, "no start, and the period before has no duration")
            start = starts[-1] + before
        if starts and start < starts[-1]:
            raise refuse(element, f"starts at {start:g} s, before the period in front of it")
        starts.append(start)
    times: list[tuple[float, float | None]] = []
    for index, element in enumerate(elements):
        until = starts[index + 1] if index + 1 < len(starts) else whole_s
        long = _bounded(element, duration_s(element, "duration"))
        if until is not None:
            left = max(0.0, until - starts[index])
            long = left if long is None else min(long, left)
        times.append((starts[index], long))
    return times


def _bounded(element: Element, seconds: float | None) -> float | None:
    if seconds is not None and seconds > _LONGEST_S:
        raise refuse(element, f"{seconds:g} s is longer than {_LONGEST_S:g} s")
    return seconds


def _period(element: Element, base: str, start_s: float, long_s: float | None) -> Period:
    base = _base(element, base)
    sets = [e for e in element.all("AdaptationSet") if not _remote(e)]
    adaptations = tuple(
        Adaptation(_content(e), representations)
        for e in sets
        if (representations := _representations(element, e, _base(e, base), start_s, long_s))
    )
    if not adaptations:
        raise refuse(element, "no representation")
    return Period(start_s, long_s, adaptations)


def _representations(
    period: Element, adaptation: Element, base: str, start_s: float, long_s: float | None
) -> tuple[Representation, ...]:
    elements = adaptation.all("Representation")
    if len(elements) > MOST_REPRESENTATIONS:
        raise refuse(adaptation, f"more than {MOST_REPRESENTATIONS} representations")
    made, segments = [], 0
    for element in elements:
        made.append(_representation(period, adaptation, element, base, start_s, long_s))
        segments += len(made[-1].segments)
        if segments > MOST_SEGMENTS_IN_ALL:
            raise refuse(adaptation, f"more than {MOST_SEGMENTS_IN_ALL} segments")
    if len({r.id for r in made}) < len(made):
        raise refuse(adaptation, "two representations with the same id")
    return tuple(sorted(made, key=lambda r: r.bandwidth_bit_per_s))


def _representation(
    period: Element, adaptation: Element, element: Element, base: str, start_s: float, long_s: float | None
) -> Representation:
    name = element.attributes.get("id")
    bandwidth = whole(element, "bandwidth", least=1)
    if not name:
        raise refuse(element, "no id")
    if bandwidth is None:
        raise refuse(element, "no bandwidth")
    # What the adaptation set says holds for its representations (5.3.7).
    common = Element(element.name, element.line, {**adaptation.attributes, **element.attributes})
    information = inherited([period, adaptation, element])
    located = locate(information, Place(_base(element, base), name, bandwidth, start_s, long_s))
    if not located.segments and located.index is None:
        raise refuse(element, "no segment")
    return Representation(
        id=name,
        bandwidth_bit_per_s=bandwidth,
        width=whole(common, "width"),
        height=whole(common, "height"),
        frame_rate=frame_rate(common.attributes.get("frameRate")),
        codecs=common.attributes.get("codecs"),
        initialization=located.initialization,
        segments=located.segments,
        index=located.index,
    )


def _content(adaptation: Element) -> str | None:
    """What an adaptation set holds: by contentType, else by the MIME type of the set, its representations or a ContentComponent."""
    for element in (adaptation, *adaptation.all("ContentComponent"), *adaptation.all("Representation")):
        told = element.attributes.get("contentType") or element.attributes.get("mimeType", "").partition("/")[0]
        if told:
            return told
    return None


def _base(element: Element, base: str) -> str:
    """The BaseURL of ``element`` upon that of the level above; of several the first, the others are alternatives."""
    own = element.first("BaseURL")
    if own is None:
        return base
    try:
        return urljoin(base, own.text)
    except ValueError as error:
        raise refuse(own, f"{own.text[:80]!r} is no URL: {error}") from error


def _remote(element: Element) -> bool:
    """Whether ``element`` is a link to nothing; MpdError when it is a link to something, which is not fetched."""
    link = element.attributes.get("href")
    if link is None or link == _RESOLVES_TO_NOTHING:
        return link is not None
    raise refuse(element, f"xlink:href={link[:80]!r}: remote elements are not fetched")
