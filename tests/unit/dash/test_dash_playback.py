"""The emulated buffer, and the scores made of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.experiment.dash.model import Representation
from tandem.experiment.dash.playback import Glimpse, Playback, Stall
from tandem.experiment.dash.qoe import Shown, linear, p1203


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


def test_the_end_of_the_film_needs_no_full_buffer_and_is_no_stall():
    played = Playback(startup_s=10, resume_s=10)
    played.add(1, 4)
    played.all_loaded(2)
    assert (played.state, played.started_s) == ("playing", 2)
    played.advance(6)
    assert (played.state, played.ended_s, played.stalls) == ("ended", 6, [])


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
