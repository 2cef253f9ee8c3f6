"""A play: the emulated buffer, the player's loop by a clock of its own, and the play told as records."""

import io
import itertools
import json
import threading
import time
from dataclasses import dataclass, field
from itertools import pairwise
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.experiment.base import Output, Stop
from tandem.experiment.dash import linear, p1203, play
from tandem.experiment.dash.connection import Fetched
from tandem.experiment.dash.mpd import Representation
from tandem.experiment.dash.play import Glimpse, Play, Playback, PlaybackRecords, Player, Shown, Stall, play_fields
from tandem.schema.record import Record


def test_it_starts_stalls_goes_on_and_ends():
    played = Playback(startup_s=3, resume_s=4)
    played.add(1.0, 2)
    assert (played.state, played.level_s) == ("starting", 2)
    played.add(2.5, 2)
    assert (played.state, played.started_s, played.level_s) == ("playing", 2.5, 4)
    played.advance(8)  # empty at 6.5
    assert (played.state, played.level_s, played.played_s) == ("stalled", 0, 4)
    assert played.stalled_s == pytest.approx(1.5)
    played.add(9, 2)
    assert played.state == "stalled"
    played.add(10, 2)
    assert played.state == "playing"
    assert played.stalls == [Stall(6.5, 3.5, 4)]
    played.all_loaded(11)
    played.advance(20)
    assert (played.state, played.ended_s, played.played_s) == ("ended", 14, 8)
    assert played.stalled_s == 3.5
    short = Playback(startup_s=10, resume_s=10)
    short.add(1, 4)
    short.all_loaded(2)
    assert (short.state, short.started_s) == ("playing", 2), "the end of the film needs no full buffer"
    short.advance(6)
    assert (short.state, short.ended_s, short.stalls) == ("ended", 6, [])


def test_given_up_within_a_stall_it_counts_until_then():
    played = Playback(0, 2)
    played.add(1, 1)
    played.give_up(5)
    assert played.stalls == [Stall(2, 3, 1)]
    assert played.stalled_s == 3  # once, not as an open stall too
    assert (played.state, played.ended_s) == ("ended", None)
    assert played.glimpse(9).stalled_s == 3


@given(
    st.floats(0, 5),
    st.floats(0, 5),
    st.lists(st.tuples(st.floats(0, 9), st.floats(0.1, 9)), max_size=20),
    st.floats(0, 60),
)
def test_a_glimpse_is_what_advancing_would_make_and_changes_nothing(startup_s, resume_s, segments, ahead_s):
    played, now_s = Playback(startup_s, resume_s), 0.0
    for wait_s, duration_s in segments:
        now_s += wait_s
        played.add(now_s, duration_s)
    before = (played.now_s, played.state, played.level_s, played.played_s, list(played.stalls))
    seen = played.glimpse(now_s + ahead_s)
    assert (played.now_s, played.state, played.level_s, played.played_s, played.stalls) == before
    played.advance(now_s + ahead_s)
    assert seen == Glimpse(played.state, played.level_s, played.played_s, played.stalled_s)


@given(
    st.floats(0, 10),
    st.floats(0, 10),
    st.lists(st.tuples(st.floats(0, 30), st.floats(0.1, 15)), min_size=1, max_size=40),
)
def test_time_is_startup_and_play_and_stalls_and_nothing_else(startup_s, resume_s, segments):
    played, now_s = Playback(startup_s, resume_s), 0.0
    for wait_s, duration_s in segments:
        now_s += wait_s
        played.add(now_s, duration_s)
        assert played.level_s >= 0
    played.all_loaded(now_s)
    played.advance(now_s + 10_000)
    assert played.state == "ended"
    assert played.played_s == pytest.approx(sum(d for _, d in segments))
    assert played.ended_s == pytest.approx(played.started_s + played.played_s + played.stalled_s)


def test_the_linear_score_by_hand():
    # 1000 + 3000 + 2000 − (2000 + 1000) − 3000 · 0.5 − 3000 · 0.1
    assert linear([1e6, 3e6, 2e6], 0.5, 0.1) == pytest.approx(6000 - 3000 - 1500 - 300)
    assert linear([], 0, 0) is None


def test_p1203_has_what_is_known_and_nothing_else():
    known = Representation("v", 1, 1280, 720, 24.0, "avc1.64001f", None, ())
    bare = Representation("w", 1, None, None, None, None, None, ())
    shown = [Shown(known, 750_000, 0, 6), Shown(bare, 75_000, 6, 6)]
    made = p1203(shown, [Stall(9.0, 1.5, 6.0)], 0.25)
    assert made["I13"]["segments"] == [
        {"bitrate": 1000.0, "duration": 6, "start": 0, "codec": "h264", "resolution": "1280x720", "fps": 24.0},
        {"bitrate": 100.0, "duration": 6, "start": 6},
    ]
    assert made["I23"]["stalling"] == [[0.0, 0.25], [6.0, 1.5]]


BITRATES = (200_000, 1_000_000)
S = 10**9


@dataclass
class Film:
    """A link, a clock and a stop in one: ``delay_s`` of segment ``number`` of ``size`` bytes is all the time that loading takes."""

    segment_s: float
    segments: int
    delay_s: object = lambda _number, _size: 0.0
    now_ns: int = 5 * S
    root: str = "http://server"
    connects: int = 1
    deadline_ns: int = 10**6 * S
    received: int = 0
    asked: list = field(default_factory=list)

    def monotonic_ns(self):
        return self.now_ns

    def wait(self, seconds):
        self.now_ns += round(seconds * S)
        return False

    def by_path(self):
        return {"a": self.received}

    def get(self, resource, keep=None, taker=None):
        assert taker is None
        begun = self.now_ns
        self.asked.append(resource.url.removeprefix(self.root))
        content = self.manifest() if keep else b""
        size = len(content)
        if not content:
            representation, _, name = resource.url.rpartition("/film/")[2].partition("/")
            size = round(BITRATES[int(representation[1:])] * self.segment_s / 8)
            self.wait(self.delay_s(int(name.removesuffix(".m4s")), size))
        self.received += size
        return Fetched(size, begun, begun, self.now_ns, content, False)

    def manifest(self):
        template = f'<SegmentTemplate duration="{self.segment_s:g}" media="$RepresentationID$/$Number$.m4s"/>'
        template = template.replace(f'"{self.segment_s:g}"', f'"{round(self.segment_s * 1000)}" timescale="1000"')
        inside = "".join(f'<Representation id="v{n}" bandwidth="{b}"/>' for n, b in enumerate(BITRATES))
        return (
            f'<MPD mediaPresentationDuration="PT{self.segments * self.segment_s:g}S"><Period>'
            f'<AdaptationSet contentType="video">{template}{inside}</AdaptationSet></Period></MPD>'
        ).encode()


@pytest.fixture
def shown(monkeypatch):
    """Play a film to its end; the play."""

    def run(film, **asked):
        monkeypatch.setattr(play, "time", film)
        request = SimpleNamespace(
            kind="tcp",
            primary=SimpleNamespace(name="a"),
            content="film",
            mpd="film.mpd",
            seconds=None,
            **{"abr": "fixed", "fixed_index": 0, "stable_buffer_s": 12.0, "buffer_max_s": 30.0, **asked},
        )
        made = Player(request, film, Output(io.StringIO(), Stop()), film)
        made.run()
        return made.play

    return run


def test_a_film_is_played_without_a_stall(shown):
    film = Film(0.5, 8, lambda *_: 0.1)
    told = shown(film, fixed_index=1, startup_buffer_s=1, resume_buffer_s=0.5, buffer_max_s=2)
    playback = told.playback
    assert film.asked[1:] == [f"/v1/content/film/v1/{n}.m4s" for n in range(1, 9)]
    assert (playback.stalls, playback.stalled_s) == ([], 0)
    assert playback.started_s == pytest.approx(0.2)  # two segments
    assert playback.ended_s == pytest.approx(4.2)
    assert [row["number"] for row in told.log] == list(range(1, 9))
    assert [row["media_s"] for row in told.log] == [n * 0.5 for n in range(8)]
    assert max(row["buffer_level_ms"] for row in told.log) == pytest.approx(1900)  # at most 2 s less what loading took
    assert [row["goodput_bit_per_s"] for row in told.log] == pytest.approx([5e6] * 8)
    assert linear([r.representation.bandwidth_bit_per_s for r in told.shown], 0.0, 0.2) == pytest.approx(8000 - 600)


def test_a_segment_that_comes_late_is_a_stall_as_long_as_it_is_late(shown):
    """1 s is buffered when segment 5 is asked for; it takes 2.5 s."""
    film = Film(0.5, 8, lambda number, _: 2.5 if number == 5 else 0.0)
    told = shown(film, startup_buffer_s=0.5, resume_buffer_s=0.5, buffer_max_s=1.5)
    late = told.log[4]
    (stall,) = told.playback.stalls
    assert (late["buffer_before_ms"], late["duration_ms"]) == (pytest.approx(1000), pytest.approx(2500))
    assert (stall.duration_s, stall.media_s) == (pytest.approx(1.5), pytest.approx(2.0))
    assert late["stall_ms"] == pytest.approx(1500)
    assert told.playback.ended_s == pytest.approx(4 + 1.5)


def test_the_bitrate_follows_the_throughput_up_and_down(shown):
    """8 Mbit/s up to the fifth segment, then 400 kbit/s: nine tenths of the first allow the second bitrate, of the other the first."""
    film = Film(1.0, 10, lambda number, size: size * 8 / (8e6 if number <= 5 else 4e5))
    told = shown(film, abr="throughput", startup_buffer_s=1, resume_buffer_s=1, buffer_max_s=4)
    chosen = [row["representation"] for row in told.log]
    # the sixth is still chosen by what the fifth brought
    assert chosen[:6] == ["v0", *["v1"] * 5]
    assert "".join(chosen[6:]) in ("v1" * n + "v0" * (4 - n) for n in range(4))
    assert {row["rule"] for row in told.log} == {"throughput"}


class Scripted:
    """A player that stands as the test says; ``seen`` is set at each look."""

    def __init__(self):
        self.play = Play(Playback(2, 2), time.monotonic_ns(), "mptcp", "a")
        self.now = Glimpse("starting", 0.0, 0.0, 0.0)
        self.looks = 0
        self._looked = threading.Condition()

    def glimpse(self, now_s):
        assert now_s >= 0
        with self._looked:
            self.looks += 1
            self._looked.notify_all()
            return self.now

    def becomes(self, *values):
        """Stand so, until it has been looked at twice: the second look began after the first was told."""
        with self._looked:
            self.now = Glimpse(*values)
            wanted = self.looks + 2
            assert self._looked.wait_for(lambda: self.looks >= wanted, 60)


def told(stream):
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert {line["type"] for line in lines} <= {"record"}
    for line in lines:
        Record.make(line["measurement"], line["tags"], line["fields"], line["monotonic_ns"])
    return lines


def test_each_change_of_state_is_told_and_the_end_with_its_figures(monkeypatch):
    monkeypatch.setattr(play, "EVERY_S", 1e9)  # by change alone
    player, stream = Scripted(), io.StringIO()
    with PlaybackRecords(Output(stream, Stop()), player.play, player.glimpse):
        player.becomes("playing", 4.0004, 1.0, 0.0)
        player.becomes("playing", 3.0, 2.0, 0.0)
        player.becomes("stalled", 0.0, 5.0, 0.25)
        player.now = Glimpse("stalled", 0.0, 5.0, 0.5)
    lines = told(stream)
    assert {(line["measurement"], line["tags"]["kind"], line["tags"]["path"]) for line in lines} == {
        ("dash_playback", "mptcp", "a")
    }
    assert [line["fields"] for line in lines[:2]] == [
        {"state": "starting", "buffer_level_ms": 0.0, "played_s": 0.0, "stalled_s": 0.0},
        {"state": "playing", "buffer_level_ms": 4000.4, "played_s": 1.0, "stalled_s": 0.0},
    ]
    assert [line["fields"]["state"] for line in lines] == ["starting", "playing", "stalled", "stalled"]
    assert lines[-1]["fields"]["stalled_s"] == 0.5
    times = [line["monotonic_ns"] for line in lines]
    assert times == sorted(set(times))


def test_while_nothing_changes_it_is_told_at_its_interval_and_not_at_each_look(monkeypatch):
    """By a clock that goes on by a tenth of a second from look to look."""
    player, stream = Scripted(), io.StringIO()
    clock = itertools.count(player.play.begun_ns, 10**8)
    monkeypatch.setattr(play, "time", SimpleNamespace(monotonic_ns=lambda: next(clock)))
    monkeypatch.setattr(play, "_LOOK_S", 0.001)
    with PlaybackRecords(Output(stream, Stop()), player.play, player.glimpse):
        while len(stream.getvalue().splitlines()) < 3:
            player.becomes("starting", 0.0, 0.0, 0.0)
    times = [line["monotonic_ns"] for line in told(stream)]
    assert {after - before for before, after in pairwise(times)} == {10**9}


def test_the_end_is_told_once_and_the_thread_is_gone_also_when_the_play_failed(monkeypatch):
    monkeypatch.setattr(play, "EVERY_S", 1e9)
    player, stream, before = Scripted(), io.StringIO(), set(threading.enumerate())

    def fail():
        with PlaybackRecords(Output(stream, Stop()), player.play, player.glimpse):
            player.becomes("ended", 0.0, 6.0, 0.0)
            raise OSError("the network")

    with pytest.raises(OSError, match="the network"):
        fail()
    assert set(threading.enumerate()) <= before
    assert [line["fields"]["state"] for line in told(stream)] == ["starting", "ended"]


MEASURED = {
    "bytes": 1000,
    "goodput_bit_per_s": 1234.5678,
    "startup_delay_ms": None,
    "media_s": 4.0,
    "play_s": 9.0,
    "stalls": 1,
    "stalled_s": 0.5,
    "stall_ratio": 0.1,
    "switches": 2,
    "segments": [{"number": 1}],
    "qoe_linear_per_segment": -2.5,
    "subflows": [{"path": "b", "bytes": 1, "share": 0.25}, {"path": "a", "bytes": 3, "share": 0.75}],
    "fallback": False,
}


def test_a_plays_record_keeps_the_schema_and_counts_segments_also_where_nothing_came():
    play = Play(Playback(2, 2), time.monotonic_ns(), "mptcp", "a", shown=[None, None])
    fields = play_fields(MEASURED, play, whole=True, content="c/m.mpd")
    record = Record.make("dash", {"kind": "mptcp", "path": "a", "rule": "bba"}, fields, 1)
    assert record.fields["segments"] == 2
    assert record.fields["qoe_bit_per_s"] == -2500
    assert record.fields["primary_share"] == 0.75
    assert record.fields["goodput_bit_per_s"] == 1234.568
    assert record.fields["play_s"] == 9.0
    assert "startup_delay_ms" not in record.fields  # it never began: absent, and no 0
    nothing = Play(Playback(2, 2), time.monotonic_ns(), "tcp", "b")
    record = Record.make("dash", {}, play_fields(None, nothing, whole=False, content="c/m.mpd"), 1)
    assert (record.fields["whole"], record.fields["segments"]) == (False, 0)
    assert {"startup_delay_ms", "bitrate_bit_per_s"}.isdisjoint(record.fields)
