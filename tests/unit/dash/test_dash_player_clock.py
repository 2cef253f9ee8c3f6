"""The player's loop by a clock of its own: startup, a stall as long as a segment is late, and the rule that follows the throughput."""

import io
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from tandem.experiment.base import Output, Stop
from tandem.experiment.dash import play, player
from tandem.experiment.dash.fetch import Fetched
from tandem.experiment.dash.player import Player
from tandem.experiment.dash.qoe import linear

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
        for module in (player, play):
            monkeypatch.setattr(module, "time", film)
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
