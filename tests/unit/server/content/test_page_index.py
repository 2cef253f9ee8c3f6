"""Stored pages: HTTP archives, as browsers export them and as anybody may have made them; the index, which object answers a request, and
tandem-server page as a person types it."""

import base64
import copy
import json
import random
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.hostile_json import any_json, places
from tandem.schema.url import address
from tandem_server.cli.main import main
from tandem_server.content import page_recording as recording
from tandem_server.content import page_synthetic as synthetic
from tandem_server.content.page import (
    BODIES,
    INDEX,
    TLS,
    Captured,
    Match,
    Matcher,
    Page,
    PageError,
    PageStore,
    Stored,
    in_order,
    parse,
    public,
    verify,
    write,
)
from tandem_server.content.page_recording import HarError, read_har


def entry(url, text="x", status=200, at="2026-11-21T10:00:00.000Z", **more):
    content = {"size": len(text), "mimeType": "text/plain", "text": text}
    headers = [{"name": "Content-Type", "value": "text/plain"}]
    response = {"status": status, "headers": headers, "content": content, "bodySize": 7, **more.pop("response", {})}
    request = {"method": "GET", "url": url, "headers": []}
    return {"pageref": "page_1", "startedDateTime": at, "request": request, "response": response, **more}


def archive(*entries):
    page = {"startedDateTime": "2026-11-21T10:00:00.000Z", "id": "page_1", "title": ""}
    page["pageTimings"] = {"onContentLoad": 300.5, "onLoad": 900}
    creator = {"name": "WebInspector", "version": "537.36"}
    return {"log": {"version": "1.2", "creator": creator, "pages": [page], "entries": list(entries)}}


def whole():
    packed = {"size": 256, "text": base64.b64encode(bytes(range(256))).decode(), "encoding": "base64"}
    script = {"type": "script", "stack": {"callFrames": [], "parent": {"callFrames": [{"url": "https://b.test/s.js"}]}}}
    return archive(
        entry("https://a.test/#top", "<html>", _initiator={"type": "other"}),
        entry("https://b.test/s.js", "s()", _initiator={"type": "parser", "url": "https://a.test/"}),
        entry("https://b.test/p.png", response={"content": packed, "bodySize": 256}, _initiator=script),
        entry("https://c.test/late", at="2026-11-21T10:00:01.500Z"),
        entry("data:text/plain,x"),
        entry("https://c.test/lost", response={"content": {"size": 5}}),
        entry("wss://c.test/socket", status=101),
        entry("https://c.test/blocked", status=0),
        entry("https://c.test/moved", "", status=302),
    )


def read(told):
    return read_har(json.dumps(told).encode())


def test_an_archive_becomes_a_page_with_its_graph(tmp_path):
    found = read(whole())
    urls = [one.url.removeprefix("https://") for one in found.objects]
    assert urls == ["a.test/", "b.test/s.js", "b.test/p.png", "c.test/late", "c.test/moved"]
    assert [one.by for one in found.objects] == [None, 0, 1, None, None]
    assert [one.after_load for one in found.objects] == [False, False, False, True, False]
    assert found.objects[2].body == bytes(range(256))
    assert found.objects[0].wire_bytes == 7
    assert found.times_ms == {"dom_content_loaded": 300.5, "load": 900.0}
    assert found.browser == "WebInspector 537.36"
    assert [line.split(":")[0] for line in found.left_out] == ["entry 4", "entry 5", "entry 6", "entry 7"]
    assert "export with content" in found.left_out[1]
    page = write(tmp_path, in_order(found.objects), {"by": "import"}, found.times_ms)
    assert len(page.objects) == 5
    told = whole()  # of several pages only the first
    told["log"]["entries"].append({**entry("https://d.test/"), "pageref": "page_2"})
    assert not any(one.url.startswith("https://d.test") for one in read(told).objects)


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ([], "no log.entries"),
        ({"log": {"entries": []}}, "no log.entries"),
        ({"log": {"entries": [1, None, "x"]}}, "nothing in it"),
        (archive(entry("https://a.test/", status=404)), "answered 404"),
        (archive(entry("file:///etc/passwd")), "nothing in it"),
    ],
)
def test_what_is_no_page_says_so(told, why):
    with pytest.raises(HarError, match=why):
        read(told)


@given(st.binary(max_size=300))
def test_any_bytes_are_an_error(raw):
    with pytest.raises(HarError):
        read_har(raw)


JUNK = (
    None, True, -1, 1e308, 10**30, "", "x" * 50, "\ud800", "http://[", "2026-13-45", "\0", "a\r\nb: c", [], {}, [[]], {"url": []},
)  # fmt: skip


PLACES = list(places(whole()))


@given(st.integers(min_value=0, max_value=2**32), st.integers(min_value=1, max_value=4))
def test_a_hostile_archive_is_a_page_that_can_be_stored_or_one_error(seed, times):
    chance = random.Random(seed)
    hostile = copy.deepcopy(whole())
    for _ in range(times):
        path = chance.choice(PLACES)
        at = hostile
        try:
            for key in path[:-1]:
                at = at[key]
            at[path[-1]] = copy.deepcopy(chance.choice(JUNK))
        except (KeyError, IndexError, TypeError):
            continue  # an earlier change took this place away
    try:
        found = read_har(json.dumps(hostile).encode())
    except HarError as error:
        told = str(error)
        assert "\n" not in told
        return
    assert found.objects
    assert all(one.by is None or one.by < number for number, one in enumerate(in_order(found.objects)))
    for one in found.objects:
        assert 200 <= one.status <= 599
        assert isinstance(one.body, bytes)


JSON = any_json(20)
OBJECT = {
    "method": "GET", "url": "http://a.test/", "status": 200, "headers": [["Content-Type", "text/html"]], "body": "0" * 64, "bytes": 3,
    "wire_bytes": None, "by": None, "after_load": False,
}  # fmt: skip


def index(**changed):
    own = {"format": "tandem-page/1", "url": "http://a.test/", "made": {}, "times_ms": {}, "objects": [OBJECT]}
    return own | changed


def test_a_made_page_is_read_back_as_it_was_written_and_the_same_seed_is_the_same_page(tmp_path):
    objects = synthetic.make(3, 30, 200_000, 4, "https")
    page = write(tmp_path, objects, {"by": "build", "seed": 3}, {"load": 12.5})
    assert parse((tmp_path / INDEX).read_bytes()) == page
    assert [one.url for one in page.objects] == [one.url for one in objects]
    assert len(page.origins) == 4
    assert sum(one.bytes for one in page.objects) == pytest.approx(200_000, rel=0.02)
    assert (tmp_path / TLS).stat().st_mode & 0o777 == 0o600
    assert {one.by for one in page.objects if one.by} <= set(range(30))
    told = public(page)
    assert len(told["objects"]) == 30
    assert "headers" not in json.dumps(told)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        write(tmp_path / name, synthetic.make(7, 12, 50_000, 2, "http"), {}, {})
    assert (tmp_path / "one" / INDEX).read_text() == (tmp_path / "two" / INDEX).read_text()
    assert not (tmp_path / "one" / TLS).exists()


def test_what_browsers_decoded_is_stored_with_gzip_and_what_is_of_the_connection_is_left_out(tmp_path):
    headers = (
        ("content-encoding", "br"), ("Connection", "close"), ("alt-svc", "h3"), ("X", "1"), ("bad name", "x"),
        ("Y", "a\nb"),
    )  # fmt: skip
    page = write(tmp_path, [Captured("GET", "http://a.test/", 200, headers, b"a" * 5000, wire_bytes=99)], {}, {})
    (one,) = page.objects
    assert one.headers == (("X", "1"), ("Content-Encoding", "gzip"))
    assert one.bytes < 200
    assert one.wire_bytes == 99


def test_a_body_that_is_not_what_the_index_says_is_found(tmp_path):
    (tmp_path / "p").mkdir()
    page = write(tmp_path / "p", synthetic.make(1, 3, 5000, 1, "http"), {}, {})
    files = [tmp_path / "p" / BODIES / one.body for one in page.objects]
    files[0].write_bytes(files[0].read_bytes()[::-1])
    files[1].write_bytes(b"short")
    files[2].unlink()
    opened = PageStore(tmp_path).open("p")
    assert [line.split(":")[0] for line in verify(opened)] == ["object 0", "object 1", "object 2"]
    with pytest.raises(PageError):
        opened.body(1)


def test_no_link_is_followed(tmp_path):
    (tmp_path / "p").mkdir()
    page = write(tmp_path / "p", synthetic.make(1, 1, 5000, 1, "http"), {}, {})
    file = tmp_path / "p" / BODIES / page.objects[0].body
    (tmp_path / "secret").write_bytes(file.read_bytes())
    file.unlink()
    file.symlink_to(tmp_path / "secret")
    (tmp_path / "q").symlink_to(tmp_path / "p")
    pages = PageStore(tmp_path)
    with pytest.raises(OSError, match=r"[Ll]ink|loop|levels"):
        pages.open("p").body(0)
    assert pages.open("q") is None
    assert pages.open("../p") is None
    assert pages.open(".p") is None


def test_what_is_no_index_is_one_error():
    of_page = [({"format": "tandem-page/2"}, "format"), ({"objects": []}, "0 objects")]
    of_page += [({"url": "http://a.test/other"}, "document"), ({"times_ms": {"load": -1}}, "time")]
    of_object = [
        ({"by": 0}, "by"),
        ({"status": 200.0}, "status"),
        ({"body": "../../../etc/passwd"}, "sha256"),
        ({"body": None}, "no body"),
        ({"bytes": 1 << 40}, "bytes"),
        ({"headers": [["A", "b\r\nC: d"]]}, "header"),
        ({"headers": [["A b", "c"]]}, "header"),
        ({"url": "ftp://a.test/"}, "http"),
        ({"url": "http://a.test:x/"}, "url|Port|port"),
        ({"url": "http://a.test/a b"}, "URL"),
        ({"method": "get"}, "method"),
    ]
    for changed, why in of_page + [({"objects": [OBJECT | changed]}, why) for changed, why in of_object]:
        with pytest.raises(PageError, match=why):
            parse(json.dumps(index(**changed)))


@given(st.sampled_from(sorted(OBJECT)), JSON)
def test_any_value_of_any_key_is_taken_or_refused(key, value):
    try:
        page = parse(json.dumps(index(objects=[{**OBJECT, key: value}])))
    except PageError:
        return
    assert parse(json.dumps(index(objects=[{**OBJECT, key: value}]))) == page


@given(st.binary(max_size=200), JSON)
def test_any_bytes_and_any_json_are_an_error(raw, value):
    for content in (raw, json.dumps(value).encode()):
        with pytest.raises(PageError):
            parse(content)


@given(st.text(max_size=60))
def test_any_text_is_an_address_or_an_error(text):
    for url in (text, f"http://{text}", f"https://a.test/{text}"):
        try:
            found = address(url)
        except ValueError:
            continue
        assert found.target.startswith("/")
        assert found.origin.host


def stored(url, method="GET"):
    return Stored(method, url, 200, (), None, 0)


PAGE = Page(
    "https://www.a.test/",
    (
        stored("https://www.a.test/"),
        stored("https://cdn.a.test/x.js?v=1&cb=111"),
        stored("https://cdn.a.test/x.js?v=2&cb=222"),
        stored("https://cdn.a.test/x.js"),
        stored("http://cdn.a.test:8080/x.js?v=9"),
        stored("https://api.a.test/log", "POST"),
        stored("https://cdn.a.test/x.js?v=2&cb=222"),
    ),
)


def test_a_request_is_answered_by():
    script = "https://cdn.a.test/x.js"
    for asked, expected in (
        ("GET https://www.a.test/", Match(0, True)),
        ("HEAD https://www.a.test/", Match(0, True)),
        ("GET https://WWW.A.TEST:443/", Match(0, True)),
        ("GET http://www.a.test/", None),
        ("GET https://www.a.test/other", None),
        (f"GET {script}?v=2&cb=222", Match(2, True)),
        (f"GET {script}?v=2&cb=999", Match(2, False)),
        (f"GET {script}?cb=999&v=1", Match(1, False)),
        (f"GET {script}", Match(3, True)),
        (f"GET {script}?q=3", Match(1, False)),
        ("GET http://cdn.a.test:8080/x.js?v=1", Match(4, False)),
        ("POST https://api.a.test/log", Match(5, True)),
        ("GET https://api.a.test/log", None),
        ("GET https:///", None),
        ("GET https://a:b:c/", None),
        ("GET https://[::1/", None),
    ):
        method, scheme, authority, target = re.fullmatch("(.*) (.*)://(.*?)(/.*)", asked).groups()
        assert Matcher(PAGE).find(method, scheme, authority, target) == expected, asked


@given(st.text(max_size=10), st.sampled_from(["http", "https"]), st.text(max_size=30), st.text(max_size=60))
def test_any_request_finds_an_object_of_its_path_or_none(method, scheme, authority, target):
    found = Matcher(PAGE).find(method, scheme, authority, target)
    assert found is None or PAGE.objects[found.number].url.partition("?")[0].endswith(target.partition("?")[0])


@pytest.fixture
def config(tmp_path):
    file = tmp_path / "server.toml"
    file.write_text("[listen]\n[store]\n")
    return file


def said(capsys, *args):
    status = main(["page", *map(str, args)])
    out, err = capsys.readouterr()
    return status, out, err


def test_built_pages_are_listed_and_a_damaged_one_as_such(config, capsys):
    assert said(capsys, "build", "--config", config, "--objects", 5, "--bytes", 20000)[0] == 0
    assert said(capsys, "build", "--config", config, "--name", "plain", "--scheme", "http", "--objects", 1)[0] == 0
    status, out, _ = said(capsys, "list", "--config", config, "--json")
    rows = json.loads(out)
    assert status == 0
    assert [(row["name"], row["objects"], row["wrong"]) for row in rows] == [
        ("plain", 1, []),
        ("synthetic-page", 5, []),
    ]
    status, out, _ = said(capsys, "list", "--config", config)
    assert out.splitlines()[1].startswith("synthetic-page: https://www.page-1.test/: 5 objects of ")
    for body in (config.parent / "content/synthetic-page/bodies").iterdir():
        body.write_bytes(b"")
    status, out, _ = said(capsys, "list", "--config", config)
    assert status == 1
    assert "make the page anew" in out


def test_an_archive_is_imported_under_its_host(config, capsys, tmp_path):
    file = tmp_path / "a.har"
    file.write_text(json.dumps(whole()))
    status, out, err = said(capsys, "import", file, "--config", config)
    assert status == 0
    assert out.startswith("a.test: https://a.test/: 5 objects of 3 origins")
    assert err.count("left out: ") == 4


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (["build", "--name", "../x"], "hint: --name"),
        (["build", "--objects", "0"], "--objects 0; hint: 1 to 1000"),
        (["build", "--bytes", "1"], "--bytes 1; hint"),
        (["import", "nowhere.har"], "nowhere.har: no such file"),
        (["import", "server.toml"], "server.toml: no JSON"),
        (["record"], "name a URL, or --list FILE"),
        (["record", "ftp://x.test/"], "no http or https URL"),
        (["record", "--list", "nowhere"], "nowhere: No such file"),
        (["record", "--list", "names"], "names:2"),
        (["build", "--name", "film"], "is no page"),
    ],
)
def test_what_is_wrong_is_one_line(config, capsys, monkeypatch, args, why):
    monkeypatch.chdir(config.parent)
    Path("names").write_text("1,example.org\n2,exa mple\n")
    Path("content/film").mkdir(parents=True)  # a DASH presentation is not overwritten
    status, _, err = said(capsys, *args, "--config", config)
    assert (status, why in err, len(err.splitlines())) == (2, True, 1), err


def test_without_a_browser_recording_says_what_to_install(config, capsys, monkeypatch):
    monkeypatch.setenv("TANDEM_CHROMIUM", "/nowhere/chromium")
    status, _, err = said(capsys, "record", "http://a.test/", "--config", config)
    assert status == 3
    assert "chromium-headless-shell" in err


def test_a_page_leads_to_public_addresses_and_where_it_was_named(monkeypatch):
    monkeypatch.setattr(recording, "getproxies", dict)
    of_a, of_here = recording._Public("http://a.test/"), recording._Public("http://127.0.0.1:8000/")
    allowed = [
        of_a.fault("http://1.1.1.1/", None),
        of_a.fault("http://a.test/", "[2606:4700::1111]"),
        of_a.fault("data:text/plain,x", None),
        of_here.fault("http://127.0.0.1:8000/x", "127.0.0.1"),
    ]
    assert allowed == [None] * 4
    inside = ("127.0.0.1:8086/query", "[::ffff:127.0.0.1]/", "localhost/", "169.254.169.254/latest")
    refused = [of_a.fault(f"http://{place}", None) for place in inside]
    refused.append(of_a.fault("http://a.test/", "10.0.0.1"))  # what its name was resolved to has changed
    refused.append(of_here.fault("http://127.0.0.1:8086/x", None))
    assert None not in refused
