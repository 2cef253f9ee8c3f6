"""MPDs: addresses and times of segments, what is refused in a line, and any bytes."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.hostile_json import badly_refused
from tandem.experiment.dash.mpd import MOST_SEGMENTS, Representation, Resource, parse, prepare, with_index
from tandem.experiment.dash.mpd_xml import ByteRange, MpdError

URL = "http://203.0.113.10:8480/v1/content/film/film.mpd"
HERE = "http://203.0.113.10:8480/v1/content/film/"


def mpd(content: str, duration: str = 'mediaPresentationDuration="PT60S"', more: str = "") -> bytes:
    """A whole MPD around ``content`` (periods)."""
    return (
        f'<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" {duration}>'
        f"{more}{content}</MPD>"
    ).encode()


def one_period(content: str, **more: str) -> bytes:
    """One period, one adaptation set of video."""
    return mpd(f'<Period><AdaptationSet contentType="video">{content}</AdaptationSet></Period>', **more)


def representation(content: str = "", name: str = "v1", bandwidth: int = 1_000_000, more: str = "") -> str:
    """One representation."""
    return f'<Representation id="{name}" bandwidth="{bandwidth}" {more}>{content}</Representation>'


# --- MPDs of every kind into segments: addresses, times, inheritance, and what is refused; whatever a server sends is a value or one
# error


def only(document):
    """The one representation of the one period."""
    (period,) = parse(document, URL).periods
    (found,) = period.video.representations
    return found


def names(found):
    return [segment.media.url.removeprefix(HERE) for segment in found.segments]


def times(found):
    return [(segment.start_s, segment.duration_s) for segment in found.segments]


def template(rows="", attributes='media="$Time$" timescale="2"'):
    return f"<SegmentTemplate {attributes}>{rows and f'<SegmentTimeline>{rows}</SegmentTimeline>'}</SegmentTemplate>"


SEGMENTS = {
    "numbers with a width, from startNumber; the last is cut": (
        template(attributes='media="$RepresentationID$/$Number%05d$.m4s" startNumber="7" duration="25000" timescale="1000"'), "PT60S",
        [("v1/00007.m4s", 0, 25), ("v1/00008.m4s", 25, 25), ("v1/00009.m4s", 50, 10)],
    ),
    "a duration told with few digits makes no segment more": (
        template(attributes='media="$Number$" duration="2002000" timescale="1000000"'), "PT20.02000001S",
        [(str(n + 1), pytest.approx(2.002 * n), pytest.approx(2.002)) for n in range(10)],
    ),
    "a timeline with repeats, a gap and an offset": (
        template('<S t="100" d="20" r="2"/><S t="200" d="50"/><S d="30"/>',
                 'media="$Time$-$Number$-$Bandwidth$" timescale="10" presentationTimeOffset="100"'), "PT60S",
        [("100-1-1000000", 0, 2), ("120-2-1000000", 2, 2), ("140-3-1000000", 4, 2), ("200-4-1000000", 10, 5), ("250-5-1000000", 15, 3)],
    ),
    "a negative repeat lasts until the next row, the last one until the end": (
        template('<S t="0" d="10" r="-1"/><S t="35" d="17" r="-1"/>'), "PT60S",
        [(str(t), t / 2, d / 2) for t, d in ((0, 10), (10, 10), (20, 10), (30, 5), *((35 + 17 * n, 17) for n in range(5)))],
    ),
    "more repeats than numbers have": (
        template('<S t="0" d="20" r="999999999999999999"/>'), "PT20S", [("0", 0, 10), ("20", 10, 10)],
    ),
    "rows beyond the end": (
        template('<S t="0" d="20" r="1"/><S d="7" r="8"/><S d="3"/>'), "PT25S",
        [("0", 0, 10), ("20", 10, 10), ("40", 20, 3.5), ("47", 23.5, 1.5)],
    ),
    "a row that begins beyond the end": (
        template('<S t="0" d="20" r="-1"/><S t="90" d="20"/>'), "PT25S", [("0", 0, 10), ("20", 10, 10), ("40", 20, 5)],
    ),
    "an end that rounding moved": (template('<S t="0" d="20" r="1"/>'), "PT20.0000001S", [("0", 0, 10), ("20", 10, 10)]),
    "elements of other namespaces are passed over": (
        '<BaseURL>a</BaseURL><x:SegmentList xmlns:x="urn:other"><SegmentURL/></x:SegmentList>', "PT60S", [("a", 0, 60)],
    ),
}  # fmt: skip


def test_addresses_and_times_of_segments():
    for case, (content, duration, expected) in SEGMENTS.items():
        found = only(one_period(representation(content), duration=f'mediaPresentationDuration="{duration}"'))
        assert [(name, *at) for name, at in zip(names(found), times(found), strict=True)] == expected, case


def test_an_element_may_have_as_many_children_as_it_has_lines():
    rows = "\n".join('<S d="1"/>' for _ in range(5000))
    content = f'<SegmentTemplate media="$Number$"><SegmentTimeline>\n{rows}\n</SegmentTimeline></SegmentTemplate>'
    found = only(one_period(representation(content), duration='mediaPresentationDuration="PT5000S"'))
    assert len(found.segments) == 5000
    listed = "\n".join(f'<SegmentURL media="{n}"/>' for n in range(3000))
    assert names(only(one_period(representation(f'<SegmentList duration="1">\n{listed}\n</SegmentList>'))))[-1] == "59"


def test_a_duration_has_as_many_decimals_as_it_likes():
    for seconds in ("604.0399780273438", "604." + "0" * 200 + "1"):
        found = parse(one_period(representation(), duration=f'mediaPresentationDuration="PT{seconds}S"'), URL)
        assert found.duration_s == pytest.approx(float(seconds))


def test_the_namespace_as_drafts_of_2011_wrote_it_is_read_and_another_one_is_named():
    """Their initialization may be in a SegmentBase beside the list."""
    content = (
        '<SegmentBase><Initialization sourceURL="i.mp4"/></SegmentBase>'
        '<SegmentList duration="30"><SegmentURL media="a"/><SegmentURL media="b"/></SegmentList>'
    )
    document = one_period(representation(content))
    assert b"urn:mpeg:dash:schema:mpd:2011" in document
    found = only(document.replace(b"urn:mpeg:dash:schema:mpd:2011", b"urn:mpeg:DASH:schema:MPD:2011"))
    assert (names(found), found.initialization) == (["a", "b"], Resource(HERE + "i.mp4"))
    other = document.replace(b"urn:mpeg:dash:schema:mpd:2011", b"urn:3GPP:ns:PSS:AdaptiveHTTPStreamingMPD:2009")
    with pytest.raises(MpdError, match="AdaptiveHTTPStreamingMPD:2009'; read is 'urn:mpeg:dash:schema:mpd:2011'"):
        only(other)


def test_a_list_with_ranges_and_one_without_media():
    content = (
        '<BaseURL>all.mp4</BaseURL><SegmentList duration="20"><Initialization range="0-99"/>'
        '<SegmentURL mediaRange="100-199"/><SegmentURL media="b.m4s"/><SegmentURL media="c.m4s" mediaRange="5-9"/></SegmentList>'
    )
    found = only(one_period(representation(content)))
    assert [segment.media for segment in found.segments] == [
        Resource(HERE + "all.mp4", ByteRange(100, 199)),
        Resource(HERE + "b.m4s"),
        Resource(HERE + "c.m4s", ByteRange(5, 9)),
    ]
    assert found.initialization == Resource(HERE + "all.mp4", ByteRange(0, 99))


def test_a_base_has_an_index_to_be_read_and_without_one_is_a_single_segment():
    content = '<BaseURL>a.mp4</BaseURL><SegmentBase indexRange="800-899"><Initialization range="0-799"/></SegmentBase>'
    found = only(one_period(representation(content)))
    assert found.index == Resource(HERE + "a.mp4", ByteRange(800, 899))
    assert found.segments == ()
    plain = only(one_period(representation("<BaseURL>a.mp4</BaseURL>")))
    assert (names(plain), times(plain)) == (["a.mp4"], [(0, 60)])


def test_base_urls_add_up_from_level_to_level_and_an_absolute_one_begins_anew():
    def document(of_period):
        period = f"<Period>{of_period}<AdaptationSet><BaseURL>set/</BaseURL><BaseURL>http://other/</BaseURL>"
        inside = representation('<BaseURL>rep/</BaseURL><SegmentTemplate media="$Number$.m4s" duration="60"/>')
        return mpd(f"{period}{inside}</AdaptationSet></Period>", more="<BaseURL>top/</BaseURL>")

    assert names(only(document("<BaseURL>p1/</BaseURL>"))) == ["top/p1/set/rep/1.m4s"]
    absolute = only(document("<BaseURL>http://203.0.113.20/x/</BaseURL>"))
    assert absolute.segments[0].media.url == "http://203.0.113.20/x/set/rep/1.m4s"
    assert names(only(document("<BaseURL>../../up/</BaseURL>")))[0].endswith("/v1/content/up/set/rep/1.m4s")


def test_attributes_and_timelines_are_inherited_and_the_lower_level_wins():
    period = (
        '<Period><SegmentTemplate timescale="1000" initialization="$RepresentationID$.i" media="p-$Number$" duration="30000"/>'
        '<AdaptationSet mimeType="video/mp4" width="640" height="360" frameRate="30000/1001" codecs="avc1.64001f">'
        '<SegmentTemplate media="a-$RepresentationID$-$Number$" startNumber="0"/>'
        + representation(name="low", bandwidth=10)
        + representation(
            '<SegmentTemplate media="r-$Number$" duration="60000"/>', "high", 20, 'height="720" codecs="avc1.4d"'
        )
        + "</AdaptationSet></Period>"
    )
    low, high = parse(mpd(period), URL).periods[0].video.representations
    assert (names(low), times(low)) == (["a-low-0", "a-low-1"], [(0, 30), (30, 30)])
    assert (names(high), times(high)) == (["r-0"], [(0, 60)])
    assert (low.width, low.height, low.codecs) == (640, 360, "avc1.64001f")
    assert low.frame_rate == pytest.approx(29.97, abs=0.01)
    assert (high.width, high.height, high.codecs) == (640, 720, "avc1.4d")
    assert high.initialization == Resource(HERE + "high.i")


def test_another_kind_below_takes_nothing_from_above():
    document = mpd(
        '<Period><SegmentTemplate media="$Number$" duration="10"/><AdaptationSet>'
        + representation('<SegmentList duration="30"><SegmentURL media="x"/><SegmentURL media="y"/></SegmentList>')
        + "</AdaptationSet></Period>"
    )
    assert names(only(document)) == ["x", "y"]


def test_periods_follow_each_other_with_what_they_say_or_what_their_neighbours_leave():
    numbered = representation('<SegmentTemplate media="$Number$" duration="10"/>')
    inside = f"<AdaptationSet>{numbered}</AdaptationSet>"
    periods = (
        f'<Period duration="PT20S">{inside}</Period><Period>{inside}</Period><Period start="PT50S">{inside}</Period>'
    )
    with pytest.raises(MpdError, match="no start, and the period before has no duration"):
        parse(mpd(f"<Period>{inside}</Period><Period>{inside}</Period>"), URL)
    found = parse(mpd(periods), URL)
    assert [(p.start_s, p.duration_s) for p in found.periods] == [(0, 20), (20, 30), (50, 10)]
    assert times(found.periods[1].video.representations[0]) == [(20, 10), (30, 10), (40, 10)]
    assert found.duration_s == 60


def test_video_is_played_whatever_comes_first_and_representations_are_sorted():
    audio = f'<AdaptationSet mimeType="audio/mp4">{representation(name="a")}</AdaptationSet>'
    inside = "".join(representation(name=str(b), bandwidth=b, more='mimeType="video/mp4"') for b in (30, 10, 20))
    found = parse(mpd(f"<Period>{audio}<AdaptationSet>{inside}</AdaptationSet></Period>"), URL)
    assert [r.id for r in found.periods[0].video.representations] == ["10", "20", "30"]


REFUSED = [
        (b"<MPD", "line 1: no XML"),
        (b"<!DOCTYPE MPD [<!ENTITY a 'b'>]><MPD>&a;</MPD>", "a document type declaration is not read"),
        (b"<?xml version='1.0' encoding='x-none'?><MPD/>", "no XML"),
        (b"<html/>", "the root is 'html'"),
        (b"<MPD/>", "no Period"),
        (b'<MPD type="dynamic"><Period/></MPD>', 'type="dynamic": a live presentation; only stored ones are played'),
        (b"<MPD><Period/></MPD>", "no representation"),
        (b"<MPD>" + b"<a>" * 40, "deeper than 32"),
        (b"<MPD>" + b"<a/>" * 200_001, "more than 200000 elements"),
        (b"<MPD " + b" ".join(b'a%d=""' % n for n in range(70)) + b"/>", "more than 64 attributes"),
        (b"<MPD><BaseURL>" + b"x" * 70_000 + b"</BaseURL></MPD>", "characters of text"),
        (b" " * (4 << 20) + b"<MPD/>", "bytes, more than 4194304"),
        (mpd("<Period/>" * 101), "more than 100 periods"),
        (mpd('<Period xmlns:x="http://www.w3.org/1999/xlink" x:href="http://else/"/>'), "remote elements are not fetched"),
        (one_period("<Representation id='v'/>"), "no bandwidth"),
        (one_period("<Representation bandwidth='1'/>"), "no id"),
        (one_period(representation() + representation()), "the same id"),
        (one_period(representation(), duration='mediaPresentationDuration="P1Y"'), "years and months have no length"),
        (one_period(representation(), duration='mediaPresentationDuration="60"'), "is no duration as PT1M30.5S"),
        (one_period(representation(), duration='mediaPresentationDuration="P999999999D"'), "is longer than"),
        (one_period(representation(), duration=""), "its duration is not said"),
        (one_period(representation('<SegmentTemplate duration="1"/>')), "no media"),
        (one_period(representation('<SegmentTemplate media="$Foo$" duration="1"/>')), "has no value here"),
        (one_period(representation('<SegmentTemplate media="$Number%099d$" duration="1"/>')), "is not %0"),
        (one_period(representation('<SegmentTemplate media="a$b" duration="1"/>')), "without its partner"),
        (one_period(representation('<SegmentTemplate media="$Time$" duration="0"/>')), "is no whole number from 1"),
        (one_period(representation('<SegmentTemplate media="$Number$" duration="1" timescale="1000000"/>')), "segments, more than"),
        (one_period(representation("<SegmentList duration='1'/>")), "no SegmentURL"),
        (one_period(representation('<SegmentBase indexRange="9-1"/>')), "is no range FIRST-LAST"),
]  # fmt: skip
TIMELINES = [
    (" ", "no S"),
    ('<S t="0"/>', "no d"),
    ('<S t="10" d="5"/><S t="12" d="5"/>', "before the end of the one before"),
    ('<S t="0" d="1" r="999999999999999999"/>', f"more than {MOST_SEGMENTS} segments"),
    ('<S t="0" d="1" r="-1"/><S d="1"/>', "the S after it has no t"),
    ('<S t="0" d="1" k="3"/>', "segment sequences"),
    ('<S t="0" d="1" r="x"/>', "is no whole number"),
]


def test_what_cannot_be_played_is_one_line():
    timed = 'media="$Time$" timescale="1000"'
    rows = [*REFUSED, *((one_period(representation(template(rows, timed))), reason) for rows, reason in TIMELINES)]
    assert badly_refused(MpdError, lambda document: parse(document, URL), rows) == []


def test_an_id_may_lead_elsewhere_and_a_number_not():
    inside = '<SegmentTemplate media="a/$RepresentationID$/$Number$" duration="60"/>'
    found = parse(one_period(representation(inside, "../b") + representation(inside, "c", 2)), URL)
    plain, up = found.periods[0].video.representations
    assert (names(up), names(plain)) == (["b/1"], ["a/c/1"])
    marked = '<SegmentTemplate media="\ue000$Number$" duration="60"/>'
    with pytest.raises(MpdError, match="characters that no URL has"):
        parse(one_period(representation(marked)), URL)


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


@given(st.binary(max_size=300) | TREES.map(lambda node: text(node).encode()))
def test_any_bytes_and_trees_of_its_own_elements(document):
    value_or_refusal(document)


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
    assert prepare("a$$b$Time%04d$", "r", 1, lambda text: text)(None, 7) == "a$b0007"
    try:
        filled = prepare(template, "r", 1, lambda text: text)(number, number)
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


def test_an_index_gives_ranges_from_its_own_end_on_and_what_is_none_is_refused():
    before = struct.pack(">I4s", 12, b"free") + b"...."
    for version in (0, 1):
        found = with_index(INDEXED, sidx([(50, 2000), (70, 1500)], version, first=3, before=before), 10.0)
        begin = 100 + len(sidx([(0, 0)] * 2, version, before=before)) + 3
        ranges = [ByteRange(begin, begin + 49), ByteRange(begin + 50, begin + 119)]
        assert [s.media.range for s in found.segments] == ranges
        assert [(s.start_s, s.duration_s) for s in found.segments] == [(10, 2), (12, 1.5)]
    rows = [
        (b"\0\0\0\x08free", "no sidx in it"),
        (b"\0\0\0\x01sidx", "a box"),
        (b"\xff\0\0\0sidx", "a box"),
        (b"\0\0\0\x08sidx", "cut short"),
        (sidx([]), "0 segments"),
        (sidx([(1, 1)], scale=0), "timescale of 0"),
        (sidx([(1 << 31 | 5, 1)]), "index of indexes"),
        (sidx([(0, 1)]), "no bytes or no duration"),
    ]
    assert badly_refused(MpdError, lambda found: with_index(INDEXED, found, 0), rows) == []


@given(st.binary(max_size=80) | st.binary(max_size=60).map(lambda b: struct.pack(">I4s", 8 + len(b), b"sidx") + b))
def test_any_index(found):
    try:
        made = with_index(INDEXED, found, 0)
    except MpdError:
        return
    assert all(s.duration_s > 0 and s.media.range.length > 0 for s in made.segments)
