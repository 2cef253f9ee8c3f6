"""VLC's log: recorded ones, by hand, and whatever else a program may write."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.hostile_json import said
from tandem.experiment.dash.connection import FetchError
from tandem.experiment.dash.vlc import Account, Event, parse, read

LOGS = Path(__file__).parent / "vlc_logs"


def told(name: str) -> Account:
    account = Account()
    for line in (LOGS / name).read_text().splitlines():
        seconds, _, text = line.partition(" ")
        event = read(text)
        if event is not None:
            account.hear(float(seconds), event)
    return account


def representations(account: Account) -> list[str]:
    return [url.split("/")[-2] for _, url in account.requests if url.endswith(".m4s")]


def test_a_stall_is_as_long_as_the_server_kept_vlc_waiting():
    """By the server (README): 14 s of video from 0.46 s on, the next at 22.3 s."""
    account = told("stall.log")
    assert account.version == "3.0.24 Vetinari"
    assert account.started_s == pytest.approx(0.457, abs=1e-3)
    (stall,) = account.stalls
    assert stall.start_s == pytest.approx(0.457 + 14, abs=0.5)
    assert stall.media_s == pytest.approx(14, abs=0.5)
    assert stall.start_s + stall.duration_s == pytest.approx(22.342, abs=1e-3)
    # what was left of 60 s when the picture went on
    assert account.ended_s == pytest.approx(22.342 + 60 - stall.media_s, abs=0.5)
    assert len(representations(account)) == 60
    assert [r for n, r in enumerate(representations(account)) if n == 0 or r != representations(account)[n - 1]] == [
        "v0",
        "v2",
        "v0",
        "v2",
    ]


def test_the_default_logic_stayed_at_the_top_when_the_link_fell_and_stalled():
    account = told("nearoptimal.log")
    assert set(representations(account)[1:]) == {"v2"}
    # By the server: segments 30 to 60 came 3.9 s apart, 31 s of video in 117 s.
    assert len(account.stalls) > 4
    assert account.stalled_s(200) > 60
    # Played and stalled make up the time from the picture's beginning to its end, but for the caching of 5.8 s that VLC went over to.
    assert account.ended_s == pytest.approx(account.started_s + 60 + account.stalled_s(200), abs=6.5)


def hear(*events: tuple[float, str, str]) -> Account:
    account = Account()
    for now_s, kind, value in events:
        account.hear(now_s, Event(kind, value))
    return account


def test_the_pictures_clock_by_hand():
    account = hear((0.5, "buffering", ""), (1.0, "ready", ""), (2.0, "position", "3000000"))
    assert account.started_s == 1.0
    assert account.shown_s(0.5) == 0
    assert account.shown_s(3.0) == 2.0
    assert account.shown_s(9.0) == 3.0  # no more has been read
    account.hear(3.0, Event("position", "3000000"))
    assert account.stalled_s(4.0) == 0
    assert account.stalled_s(6.0) == 2.0  # since 4.0, when 3 s had been shown
    account.hear(7.0, Event("buffering"))
    account.hear(8.0, Event("ready"))
    assert [(s.start_s, s.duration_s, s.media_s) for s in account.stalls] == [(4.0, 4.0, 3.0)]
    assert account.shown_s(8.5) == 3.0
    account.hear(8.6, Event("position", "9000000"))
    assert account.shown_s(9.0) == 4.0


def test_a_play_ended_from_outside_keeps_its_open_stall():
    account = hear((1.0, "ready", ""), (2.0, "position", "1500000"), (3.0, "position", "1500000"))
    account.give_up(10.0)
    assert [(s.start_s, s.duration_s) for s in account.stalls] == [(2.5, 7.5)]
    going = hear((1.0, "ready", ""), (2.0, "position", "1500000"), (3.0, "position", "2500000"))
    going.give_up(3.2)
    assert going.stalls == []
    filling = hear((1.0, "ready", ""), (2.0, "position", "500000"), (2.5, "buffering", ""))
    filling.give_up(4.0)
    assert [(s.start_s, s.duration_s) for s in filling.stalls] == [(1.5, 2.5)]
    nothing = hear((1.0, "error", "no suitable demux"), (2.0, "end", ""))
    nothing.give_up(3.0)
    assert (nothing.started_s, nothing.ended_s, nothing.stalls, nothing.error) == (None, None, [], "no suitable demux")


LINES = st.one_of(
    st.text(max_size=200),
    st.sampled_from([line.partition(" ")[2] for line in (LOGS / "stall.log").read_text().splitlines()]),
    st.integers(-(10**30), 10**30).map(lambda n: f"adaptive demux debug: cached.i_time ({n}) cur {n}"),
)


@given(st.lists(st.tuples(st.floats(0, 100), LINES), max_size=60), st.floats(0, 100))
def test_any_lines_make_stalls_that_lie_within_the_play(lines, further_s):
    account, now_s = Account(), 0.0
    for passed_s, line in lines:
        now_s += passed_s
        event = read(line)
        if event is not None:
            account.hear(now_s, event)
        assert account.shown_s(now_s) >= 0
        assert account.stalled_s(now_s) >= 0
    account.give_up(now_s + further_s)
    if account.started_s is None:
        assert account.stalls == []
        return
    end_s = account.started_s
    for stall in account.stalls:
        assert stall.start_s >= end_s - 1e-6
        assert stall.duration_s >= 0
        end_s = stall.start_s + stall.duration_s
    assert end_s <= now_s + further_s + 1e-6


def test_a_players_request_is_taken_apart():
    target, part = parse(b"GET /v1/content/film/1.m4s HTTP/1.1\r\nHost: x\r\nRange: bytes=5-9\r\n\r\n")
    assert (target, part.first, part.last) == ("/v1/content/film/1.m4s", 5, 9)
    assert parse(b"GET /a HTTP/1.0\r\nrange: bytes=0-\r\n\r\n") == ("/a", None)
    bad = [b"POST / HTTP/1.1\r\n\r\n", b"GET http://x/ HTTP/1.1\r\n\r\n", b"\r\n\r\n"]
    bad += [b"GET / HTTP/1.1\r\nRange: bytes=%s\r\n\r\n" % part for part in (b"9-5", b"5-")]
    assert [raw for raw in bad if not said(FetchError, parse, raw).startswith("VLC: ")] == []
