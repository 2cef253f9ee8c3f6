"""HTTP archives, as browsers export them, and as anybody may have made them."""

import base64
import copy
import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.hostile_json import places
from tandem_server.content.page import in_order, write
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
