"""A play told as records: once a second, at once when its state changes, and as a whole at its end."""

import io
import itertools
import json
import threading
import time
from itertools import pairwise
from types import SimpleNamespace

import pytest

from tandem.experiment.base import Output, Stop
from tandem.experiment.dash import telling
from tandem.experiment.dash.play import Play
from tandem.experiment.dash.playback import Glimpse, Playback
from tandem.experiment.dash.telling import Telling, play_fields
from tandem.schema.record import Record


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
    monkeypatch.setattr(telling, "EVERY_S", 1e9)  # by change alone
    player, stream = Scripted(), io.StringIO()
    with Telling(Output(stream, Stop()), player):
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
    monkeypatch.setattr(telling, "time", SimpleNamespace(monotonic_ns=lambda: next(clock)))
    monkeypatch.setattr(telling, "_LOOK_S", 0.001)
    with Telling(Output(stream, Stop()), player):
        while len(stream.getvalue().splitlines()) < 3:
            player.becomes("starting", 0.0, 0.0, 0.0)
    times = [line["monotonic_ns"] for line in told(stream)]
    assert {after - before for before, after in pairwise(times)} == {10**9}


def test_the_end_is_told_once_and_the_thread_is_gone_also_when_the_play_failed(monkeypatch):
    monkeypatch.setattr(telling, "EVERY_S", 1e9)
    player, stream = Scripted(), io.StringIO()
    before = set(threading.enumerate())

    def play():
        with Telling(Output(stream, Stop()), player):
            player.becomes("ended", 0.0, 6.0, 0.0)
            raise OSError("the network")

    with pytest.raises(OSError, match="the network"):
        play()
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


def test_a_plays_record_keeps_the_schema_and_counts_segments():
    play = Play(Playback(2, 2), time.monotonic_ns(), "mptcp", "a", shown=[None, None])
    fields = play_fields(MEASURED, play, whole=True, content="c/m.mpd")
    record = Record.make("dash", {"kind": "mptcp", "path": "a", "rule": "bba"}, fields, 1)
    assert record.fields["segments"] == 2
    assert record.fields["qoe_bit_per_s"] == -2500
    assert record.fields["primary_share"] == 0.75
    assert record.fields["goodput_bit_per_s"] == 1234.568
    assert record.fields["play_s"] == 9.0
    assert "startup_delay_ms" not in record.fields  # it never began: absent, and no 0


def test_a_play_of_which_nothing_came_is_a_record_too():
    play = Play(Playback(2, 2), time.monotonic_ns(), "tcp", "b")
    record = Record.make("dash", {}, play_fields(None, play, whole=False, content="c/m.mpd"), 1)
    assert (record.fields["whole"], record.fields["segments"]) == (False, 0)
    assert {"startup_delay_ms", "bitrate_bit_per_s"}.isdisjoint(record.fields)
