"""Which bytes of a file a request gets: as RFC 9110 says, and never any that are not there."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem_server.pages.front import is_loopback
from tandem_server.pages.ranges import Part, part_of

TAG = "ab" * 32


@pytest.mark.parametrize(
    ("asked", "part"),
    [
        ({}, Part(200, 0, 100)),
        ({"range": "bytes=0-"}, Part(206, 0, 100)),
        ({"range": "bytes=10-19"}, Part(206, 10, 20)),
        ({"range": "bytes=90-500"}, Part(206, 90, 100)),
        ({"range": "bytes=-30"}, Part(206, 70, 100)),
        ({"range": "bytes=-300"}, Part(206, 0, 100)),
        ({"range": "bytes=100-"}, Part(416, 0, 0)),
        ({"range": "bytes=-0"}, Part(416, 0, 0)),
        ({"range": "bytes=20-10"}, Part(200, 0, 100)),
        ({"range": "bytes=-"}, Part(200, 0, 100)),
        ({"range": "bytes=0-1,5-6"}, Part(200, 0, 100)),
        ({"range": "items=0-1"}, Part(200, 0, 100)),
        ({"range": "bytes=5-", "if-range": f'"{TAG}"'}, Part(206, 5, 100)),
        ({"range": "bytes=5-", "if-range": '"another"'}, Part(200, 0, 100)),
        ({"range": "bytes=5-", "if-range": f'W/"{TAG}"'}, Part(200, 0, 100)),
        ({"if-none-match": f'"x", W/"{TAG}"', "range": "bytes=5-"}, Part(304, 0, 0)),
        ({"if-none-match": "*"}, Part(304, 0, 0)),
        ({"if-none-match": '"x"'}, Part(200, 0, 100)),
        ({"if-match": '"x"'}, Part(412, 0, 0)),
        ({"if-match": f'W/"{TAG}"'}, Part(412, 0, 0)),
        ({"if-match": f'"{TAG}"', "range": "bytes=5-6"}, Part(206, 5, 7)),
    ],
)
def test_a_request_gets_what_it_asks_for(asked, part):
    assert part_of(asked, 100, TAG) == part


def test_an_empty_file_has_no_part():
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


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8445", "127.0.0.1", "127.8.9.1:80", "[::1]", "[::1]:8445"])
def test_names_of_loopback(host):
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host", ["", "tandem.example", "localhost.example:80", "10.0.0.1", "[2001:db8::1]:80", "127.0.0.1.example"]
)
def test_other_names(host):
    assert not is_loopback(host)
