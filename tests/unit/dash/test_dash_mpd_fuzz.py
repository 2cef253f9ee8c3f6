"""Whatever a server sends for an MPD, a template or an index: a value or one MpdError, within bounds of time and size."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpds import HERE, URL, one_period, representation

from tandem.experiment.dash.model import ByteRange, Representation, Resource
from tandem.experiment.dash.mpd import parse
from tandem.experiment.dash.segments import MOST_SEGMENTS
from tandem.experiment.dash.sidx import with_index
from tandem.experiment.dash.templates import fill
from tandem.experiment.dash.xml_reading import MpdError

ELEMENTS = (
    "MPD", "Period", "AdaptationSet", "Representation", "BaseURL", "SegmentTemplate", "SegmentList", "SegmentBase",
    "SegmentTimeline", "S", "SegmentURL", "Initialization", "ContentComponent",
)  # fmt: skip
ATTRIBUTES = (
    "type", "mediaPresentationDuration", "start", "duration", "id", "bandwidth", "width", "media", "initialization", "timescale",
    "startNumber", "endNumber", "presentationTimeOffset", "t", "d", "r", "k", "indexRange", "range", "mediaRange", "sourceURL",
    "frameRate", "contentType", "mimeType",
)  # fmt: skip
VALUES = st.sampled_from((
    "", "0", "1", "-1", "7", "90000", "999999999999999999", "1e9", "static", "dynamic", "PT60S", "PT0S", "P1D", "0-99", "9-1",
    "$Number$", "$Time$", "$$", "$Number%05d$", "a/$RepresentationID$/$Time$", "../..", "http://[", "//host", "video",
    "\u00e9", "30000/1001",
)) | st.text("$%0123456789dNumberTime/.-:[]", max_size=12)  # fmt: skip


def tree(inside):
    attributes = st.dictionaries(st.sampled_from(ATTRIBUTES), VALUES, max_size=6)
    return st.tuples(st.sampled_from(ELEMENTS), attributes, st.lists(inside, max_size=4))


def text(node):
    name, attributes, children = node
    told = "".join(f' {k}="{v}"' for k, v in attributes.items())
    return f"<{name}{told}>{''.join(map(text, children))}</{name}>"


LEAVES = st.tuples(
    st.sampled_from(ELEMENTS), st.dictionaries(st.sampled_from(ATTRIBUTES), VALUES, max_size=6), st.just([])
)
TREES = st.recursive(LEAVES, tree, max_leaves=20)


def value_or_refusal(document):
    try:
        found = parse(document, URL)
    except MpdError as error:
        told = str(error)
    else:
        told = ""
    assert "\n" not in told
    assert len(told) < 400
    if told:
        return None
    for period in found.periods:
        for r in period.video.representations:
            assert len(r.segments) <= MOST_SEGMENTS
            assert r.index is not None or all(s.duration_s > 0 for s in r.segments)
    return found


@given(st.binary(max_size=300))
def test_bytes(document):
    value_or_refusal(document)


@given(TREES)
def test_trees_of_its_own_elements(node):
    value_or_refusal(text(node).encode())


@given(st.lists(TREES, max_size=3), st.dictionaries(st.sampled_from(ATTRIBUTES), VALUES, max_size=4))
def test_anything_within_a_representation(nodes, attributes):
    more = "".join(f' {k}="{v}"' for k, v in attributes.items() if k not in ("id", "bandwidth"))
    value_or_refusal(one_period(representation("".join(map(text, nodes)), more=more)))


@given(st.integers(1, 10**4), st.integers(1000, 10**6), st.integers(0, 10**6), st.integers(1, 100))
def test_equal_segments_fill_the_period_without_a_gap(timescale, duration, start_number, seconds):
    content = f'<SegmentTemplate media="$Number$" timescale="{timescale}" duration="{duration}" startNumber="{start_number}"/>'
    document = one_period(representation(content), duration=f'mediaPresentationDuration="PT{seconds}S"')
    found = value_or_refusal(document)
    segments = found.periods[0].video.representations[0].segments
    position = 0.0
    for number, segment in enumerate(segments, start_number):
        assert segment.start_s == pytest.approx(position, abs=1e-6)
        assert segment.media.url == f"{HERE}{number}"
        position += segment.duration_s
    # to half a unit of the timescale, in which durations are whole
    assert position == pytest.approx(seconds, abs=1 / timescale)


@given(st.lists(st.tuples(st.integers(1, 10**6), st.integers(0, 20)), min_size=1, max_size=20), st.integers(1, 10**5))
def test_a_timeline_is_what_its_rows_add_up_to(rows, timescale):
    inside = "".join(f'<S d="{d}" r="{r}"/>' for d, r in rows)
    content = f'<SegmentTemplate media="$Time$" timescale="{timescale}"><SegmentTimeline>{inside}</SegmentTimeline></SegmentTemplate>'
    (period,) = parse(one_period(representation(content), duration=""), URL).periods
    durations = [d for d, r in rows for _ in range(r + 1)]
    starts = [sum(durations[:index]) for index in range(len(durations))]
    segments = period.video.representations[0].segments
    assert [s.media.url.removeprefix(HERE) for s in segments] == [str(start) for start in starts]
    assert [s.duration_s for s in segments] == [d / timescale for d in durations]
    (of_a_minute,) = parse(one_period(representation(content)), URL).periods
    cut = of_a_minute.video.representations[0].segments
    assert [s.media for s in cut] == [s.media for s in segments[: len(cut)]]
    assert sum(s.duration_s for s in cut) == pytest.approx(min(60, sum(durations) / timescale))


@given(st.text(max_size=60), st.integers(0, 10**18))
def test_templates(template, number):
    try:
        filled = fill(template, representation="r", bandwidth=1, number=number, time=number)
    except MpdError:
        return
    if "$" not in template:
        assert filled == template


INDEXED = Representation("v", 1, None, None, None, None, None, (), Resource(URL, ByteRange(100, 199)))


def sidx(rows, version=0, scale=1000, first=0, before=b""):
    times = struct.pack(">QQ" if version else ">II", 5, first)
    body = struct.pack(">B3xII", version, 1, scale) + times + struct.pack(">2xH", len(rows))
    body += b"".join(struct.pack(">III", size, duration, 0) for size, duration in rows)
    return before + struct.pack(">I4s", 8 + len(body), b"sidx") + body


@pytest.mark.parametrize("version", [0, 1])
def test_an_index_gives_ranges_from_its_own_end_on(version):
    before = struct.pack(">I4s", 12, b"free") + b"...."
    found = with_index(INDEXED, sidx([(50, 2000), (70, 1500)], version, first=3, before=before), 10.0)
    begin = 100 + len(sidx([(0, 0)] * 2, version, before=before)) + 3
    assert [s.media.range for s in found.segments] == [
        ByteRange(begin, begin + 49),
        ByteRange(begin + 50, begin + 119),
    ]
    assert [(s.start_s, s.duration_s) for s in found.segments] == [(10, 2), (12, 1.5)]


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (b"", "no sidx in it"),
        (b"\0\0\0\x08free", "no sidx in it"),
        (b"\0\0\0\x01sidx", "a box"),
        (b"\xff\0\0\0sidx", "a box"),
        (b"\0\0\0\x08sidx", "cut short"),
        (sidx([]), "0 segments"),
        (sidx([(1, 1)], scale=0), "timescale of 0"),
        (sidx([(1 << 31 | 5, 1)]), "index of indexes"),
        (sidx([(0, 1)]), "no bytes or no duration"),
        (sidx([(1, 1)])[:-4], "a box"),
    ],
)
def test_an_index_that_is_none(found, reason):
    with pytest.raises(MpdError, match=reason):
        with_index(INDEXED, found, 0)


@given(st.binary(max_size=80) | st.binary(max_size=60).map(lambda b: struct.pack(">I4s", 8 + len(b), b"sidx") + b))
def test_any_index(found):
    try:
        made = with_index(INDEXED, found, 0)
    except MpdError:
        return
    assert all(s.duration_s > 0 and s.media.range.length > 0 for s in made.segments)
