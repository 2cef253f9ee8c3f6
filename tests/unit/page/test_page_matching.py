"""Which stored object answers: the exact one, the nearest query of the same path, or none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem_server.content.page.index import Page, Stored
from tandem_server.content.page.matching import Match, Matcher


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


@pytest.mark.parametrize(
    ("method", "scheme", "authority", "target", "expected"),
    [
        ("GET", "https", "www.a.test", "/", Match(0, True)),
        ("HEAD", "https", "www.a.test", "/", Match(0, True)),
        ("GET", "https", "WWW.A.TEST:443", "/", Match(0, True)),
        ("GET", "http", "www.a.test", "/", None),
        ("GET", "https", "www.a.test", "/other", None),
        ("GET", "https", "cdn.a.test", "/x.js?v=2&cb=222", Match(2, True)),
        ("GET", "https", "cdn.a.test", "/x.js?v=2&cb=999", Match(2, False)),
        ("GET", "https", "cdn.a.test", "/x.js?cb=999&v=1", Match(1, False)),
        ("GET", "https", "cdn.a.test", "/x.js", Match(3, True)),
        ("GET", "https", "cdn.a.test", "/x.js?q=3", Match(1, False)),
        ("GET", "http", "cdn.a.test:8080", "/x.js?v=1", Match(4, False)),
        ("POST", "https", "api.a.test", "/log", Match(5, True)),
        ("GET", "https", "api.a.test", "/log", None),
        ("GET", "https", "", "/", None),
        ("GET", "https", "a:b:c", "/", None),
        ("GET", "https", "[::1", "/", None),
    ],
)
def test_a_request_is_answered_by(method, scheme, authority, target, expected):
    assert Matcher(PAGE).find(method, scheme, authority, target) == expected


@given(st.text(max_size=10), st.sampled_from(["http", "https"]), st.text(max_size=30), st.text(max_size=60))
def test_any_request_finds_an_object_of_its_path_or_none(method, scheme, authority, target):
    found = Matcher(PAGE).find(method, scheme, authority, target)
    assert found is None or PAGE.objects[found.number].url.partition("?")[0].endswith(target.partition("?")[0])


@given(st.text(alphabet="abcv=&123", max_size=20))
def test_another_query_always_finds_the_nearest(query):
    found = Matcher(PAGE).find("GET", "https", "cdn.a.test", f"/x.js?{query}")
    assert found.number in (1, 2, 3)
