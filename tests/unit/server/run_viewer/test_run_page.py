"""One run's page: what it says of a run that came by the gateway's way, nothing of a manifest becomes markup; which bytes are sent."""

import html
import json
import re
import string

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from page_runs import CAPTURE, RUN, Arrived, manifest

from support.html_page import Page
from tandem_server.analysis.one_run import account_of, file_of
from tandem_server.http.ranges import Part, part_of
from tandem_server.registry.database import Registry
from tandem_server.report.run_page import encoded, render
from tandem_server.run_viewer import is_loopback, run_to_dict
from tandem_server.store import QueryError, StoreDown


@pytest.fixture
def reader(private_influx):
    with private_influx.client("reader") as client:
        yield client


@pytest.fixture
def arrived(store, tmp_path):
    made = Arrived(tmp_path, store)
    yield made
    made.registry.close()


@pytest.fixture
def alone(tmp_path):
    made = Arrived(tmp_path)
    yield made
    made.registry.close()


def test_a_whole_run_is_told_from_end_to_end(arrived, reader):
    arrived.whole_run()
    page = Page(render(account_of(arrived.registry, reader, RUN)))
    for said in (
        "Complete. 201 of 201 records and 1 of 1 files are here.", "goodput 41.0 Mbit/s", "duration 9.75 s", "connect 52.5 ms",
        "Scheduler default", "Congestion control of the probe bbr", "Kernel 6.18.44", "Seed 7", "-90.5 dBm", "a (Alpha)", "b (Beta)",
        "handover a", "<b>cell</b> 1 to 2", "captures/a.pcap", "179 kB", "run-0123456789ac",
    ):  # fmt: skip
        assert said in page.text, said
    assert "run-0123456789ad" not in page.text, "of another pair"
    links = {attrs["href"] for tag, attrs in page.tags if tag == "a"}
    assert links == {f"{RUN}/files/captures/a.pcap", f"{RUN}.json", "run-0123456789ac"}
    drawn = [(attrs["data-mark"], attrs["data-series"]) for tag, attrs in page.tags if "data-mark" in attrs]
    assert sorted(one for one in drawn if one[0] != "moments") == sorted(
        (kind, name) for kind in ("trace", "area", "trace") for name in ("a (Alpha)", "b (Beta)")
    ), "goodput, share, round-trip time"
    assert ("moments", "handover a") in drawn


def test_shares_are_those_of_the_samples(arrived, reader):
    arrived.whole_run()
    page = render(account_of(arrived.registry, reader, RUN))
    windows = re.findall(r'<svg class="window"[^>]* y="([\d.]+)"[^>]* height="([\d.]+)"[^>]*>(.*?)</svg>', page)
    ((top, height, marks),) = [found for found in windows if 'data-mark="area"' in found[2]]
    shares = {}
    for name, d in re.findall(r'data-series="(\w) [^"]*"><path d="([^"]*)"', marks):
        places = {float(y) for y in re.findall(r"[ML][\d.]+ ([\d.]+)", d)}
        shares[name] = {round(1 - (place - float(top)) / float(height), 2) for place in places}
    assert shares == {"a": {0.0, 0.75}, "b": {0.75, 1.0}}, "three quarters and one"


def test_what_lacks_is_said(arrived, reader):
    told, files = arrived.whole_run(), [{"name": "captures/b.pcap", "bytes": 9, "sha256": "0" * 64}]
    arrived.manifest(told | {"records": {"subflow": 205}, "files": files})
    account = account_of(arrived.registry, reader, RUN)
    text = Page(render(account)).text
    assert account.row.state != "complete"
    for said in (
        "200 of 205 records and 0 of 1 files are here", "subflow: 5 of its records missing", "captures/b.pcap: not received yet",
        "captures/a.pcap (not in the manifest)",
    ):  # fmt: skip
        assert said in text


def test_nothing_is_written(arrived, reader, tmp_path):
    arrived.whole_run()
    with Registry(tmp_path / "registry.sqlite", read_only=True) as registry:
        assert account_of(registry, reader, RUN).row.state == "complete"
        with pytest.raises(Exception, match="readonly"):
            registry.runs.put("run-x", "probe-1", manifest("run-x"))
        assert registry.counted.complete_runs("probe-1", RUN) == []
    with pytest.raises((QueryError, StoreDown)):
        reader.query('DROP SERIES FROM "subflow"')


def test_a_run_that_claims_a_century_costs_little(arrived, reader):
    told = arrived.whole_run()
    arrived.manifest(told | {"ended_utc_ns": told["started_utc_ns"] + 10**18})
    account = account_of(arrived.registry, reader, RUN)
    assert account.cut
    assert account.end_s == 86_400
    assert sum(len(s.t_s) for s in account.recorded.subflows) <= 2 * 6001
    assert "Only the first day is drawn" in render(account)


def test_times_that_are_none(arrived, reader):
    for began, ended in ((None, None), (5, 4), (-(2**62), 2**62), (0, 0), (2**62, 2**63 - 1)):
        arrived.manifest(manifest(started_utc_ns=0) | {"started_utc_ns": began, "ended_utc_ns": ended})
        account = account_of(arrived.registry, reader, RUN)
        assert account.recorded is None
        assert "no times that there are" in render(account)


def test_without_a_database_the_rest_is_told(alone):
    alone.manifest(manifest())
    alone.file("captures/a.pcap", CAPTURE)
    text = Page(render(account_of(alone.registry, "the database is away", RUN))).text
    said = ("the database is away", "What arrived is not known", "captures/a.pcap")
    assert [words for words in said if words not in text] == []


def test_a_file_is_the_runs_own(alone):
    alone.manifest(manifest())
    alone.manifest(manifest("run-2", probe="probe-2", files=[{"name": "captures/a.pcap"}]))
    alone.file("captures/a.pcap", CAPTURE)
    alone.file("captures/c.pcap", b"c" * 100, run="run-3")
    run, other = (alone.registry.runs.get(name) for name in (RUN, "run-2"))
    assert file_of(alone.registry, run, "captures/a.pcap").sha256
    assert file_of(alone.registry, other, "captures/a.pcap") is None, "another probe's of the same name"
    assert file_of(alone.registry, run, "captures/c.pcap") is None, "another run's"
    assert file_of(alone.registry, run, "../registry.sqlite") is None


WILD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=40)
    | st.sampled_from(['"><script>alert(1)</script>', "</style>", "{{ 7*7 }}", "../../etc/passwd", "\x00\x1b[2J", "\u202egnp", "\ud800",
                       "' onload='x", "javascript:alert(1)", 1e308, 10**400, -(2**63)]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=20), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip
NAMED = ["name", "version", "units", "paths", "subflows", "segments", "bytes", "share", "step", "at_utc_ns",
         "goodput_bit_per_s"]  # fmt: skip
OBJECT = st.dictionaries(st.sampled_from(NAMED) | st.text(max_size=12), WILD, max_size=6)
FILES = st.lists(st.fixed_dictionaries({"name": WILD, "bytes": WILD, "sha256": WILD}) | WILD, max_size=3)
NAMES = ["download", "bandwidth", "delay", "dash", "pageload", "reachability", "latency", "traceroute", "verdict",
         "<i>own</i>"]  # fmt: skip
OBJECTS = ("experiment", "parameters", "environment", "modems", "clock", "result", "campaign", "usage", "conditions")
ALLOWED = {
    "html", "head", "meta", "title", "style", "body", "header", "p", "h1", "h2", "h3", "h4", "span", "code", "div", "b", "ul", "li",
    "section", "dl", "dt", "dd", "table", "thead", "tbody", "tr", "th", "td", "small", "i", "details", "summary", "a", "script", "br",
    "figure", "figcaption", "svg", "path", "rect", "text", "g", "defs", "use", "nav", "button",
}  # fmt: skip


@settings(
    phases=[Phase.explicit, Phase.generate],  # what fails is told as it was found: to make it small takes minutes
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    st.fixed_dictionaries(
        {
            **dict.fromkeys(OBJECTS, OBJECT),
            **dict.fromkeys(("trigger", "pair", "boot"), st.text(max_size=30)),
            "kind": st.sampled_from(["any", "mptcp", "tcp"]),
            "files": FILES,
            "paths": st.lists(st.text(max_size=20), max_size=3),
            "failure": st.none() | st.fixed_dictionaries({"reason": st.text(max_size=50), "retry": st.booleans()}),
        }
    ),
    st.sampled_from(NAMES),
)
def test_nothing_that_a_probe_sends_becomes_markup(alone, wild, experiment):
    wild["experiment"]["name"] = experiment
    if wild["kind"] != "any":
        wild["result"] |= {"bytes": 1, "duration_s": 1.0, "goodput_bit_per_s": 8.0}
    told = manifest(**wild)
    try:
        text = json.dumps(told)
    except ValueError:  # a number too long to be written
        return
    alone.registry.runs.put(RUN, "probe-1", json.loads(text))
    account = account_of(alone.registry, "no database", RUN)
    page = encoded(render(account)).decode()
    found = Page(page)
    assert {tag for tag, _ in found.tags} <= ALLOWED
    assert sum(tag == "script" for tag, _ in found.tags) == 1
    for tag, attrs in found.tags:
        assert not any(name.startswith("on") for name in attrs), (tag, attrs)
        for link in ("href", "src"):
            assert re.fullmatch(r"[A-Za-z0-9._~%/-]*", attrs.get(link) or ""), attrs
            assert not re.match(r"[a-z]+:|//", attrs.get(link) or ""), attrs
    shown = page.partition("</style>")[2].rpartition("<script>")[0]
    assert not set(html.unescape(shown)) & (set(map(chr, range(32))) - set(string.whitespace) | {"\u202e"})
    json.loads(json.dumps(run_to_dict(account), allow_nan=False))


def test_a_files_name_that_is_no_text_is_shown_as_a_file_that_is_not_here(alone):
    told = json.loads(json.dumps(manifest(files=[{"name": "\ud800", "bytes": 1, "sha256": "\udfff"}])))
    alone.registry.runs.put(RUN, "probe-1", told)
    page = Page(encoded(render(account_of(alone.registry, "no database", RUN))).decode())
    assert "not here" in page.text


def test_events_and_tags_from_a_probe_are_text(arrived, reader):
    told = arrived.whole_run()
    now = told["started_utc_ns"] + 10**9
    bad = '<img\\ src\\=x\\ onerror\\=alert(1)>"'
    run = f"subflow,boot=b1,end=probe,path={bad},probe=probe-1,run={RUN},subflow=9 goodput_bit_per_s=1e6,seq=900i {now}"
    event = f"event,boot=b1,kind=handover,path={bad},probe=probe-1 seq=901i {now}"
    assert arrived.store.write([run, run.replace(str(now), str(now + 10**8)), event]) == []
    page = Page(render(account_of(arrived.registry, reader, RUN)))
    assert "img" not in {tag for tag, _ in page.tags}
    assert '<img src=x onerror=alert(1)>"' in page.text


TAG = "ab" * 32


RANGES = {"10-19": (206, 10, 20), "90-500": (206, 90, 100), "-30": (206, 70, 100), "-300": (206, 0, 100)}
RANGES |= {
    "0-": (206, 0, 100),
    "100-": (416, 0, 0),
    "-0": (416, 0, 0),
    **dict.fromkeys(("20-10", "-", "0-1,5-6"), (200, 0, 100)),
}
OF_TAGS = [
    ({"range": "bytes=5-", "if-range": f'"{TAG}"'}, (206, 5, 100)),
    ({"range": "bytes=5-", "if-range": '"another"'}, (200, 0, 100)),
    ({"range": "bytes=5-", "if-range": f'W/"{TAG}"'}, (200, 0, 100)),
    ({"if-none-match": f'"x", W/"{TAG}"', "range": "bytes=5-"}, (304, 0, 0)),
    ({"if-none-match": "*"}, (304, 0, 0)),
    ({"if-none-match": '"x"'}, (200, 0, 100)),
    ({"if-match": '"x"'}, (412, 0, 0)),
    ({"if-match": f'W/"{TAG}"'}, (412, 0, 0)),
    ({"if-match": f'"{TAG}"', "range": "bytes=5-6"}, (206, 5, 7)),
]


def test_a_request_gets_what_it_asks_for_and_an_empty_file_has_no_part():
    by_range = [({"range": f"bytes={asked}"}, part) for asked, part in RANGES.items()]
    for asked, part in [*by_range, ({}, (200, 0, 100)), ({"range": "items=0-1"}, (200, 0, 100)), *OF_TAGS]:
        assert part_of(asked, 100, TAG) == Part(*part), asked
    assert part_of({}, 0, TAG) == Part(200, 0, 0)
    assert part_of({"range": "bytes=0-"}, 0, TAG) == Part(416, 0, 0)


@given(
    st.dictionaries(
        st.sampled_from(["range", "if-range", "if-match", "if-none-match"]),
        st.one_of(st.text(max_size=40), st.from_regex(r"bytes=[0-9]*-[0-9]*", fullmatch=True)),
    ),
    st.integers(0, 2**62),
)
def test_whatever_is_asked_no_byte_beyond_the_file_is_given(asked, length):
    part = part_of(asked, length, TAG)
    assert 0 <= part.start <= part.end <= length
    assert (part.status == 206) <= (part.start < part.end)
    assert part.status != 200 or (part.start, part.end) == (0, length)


LOOPBACK = ("localhost", "LOCALHOST:8445", "127.0.0.1", "127.8.9.1:80", "[::1]", "[::1]:8445")
OTHERS = ("", "tandem.example", "localhost.example:80", "10.0.0.1", "[2001:db8::1]:80", "127.0.0.1.example")


def test_names_of_loopback_and_others():
    assert [host for host in (*LOOPBACK, *OTHERS) if is_loopback(host)] == list(LOOPBACK)
