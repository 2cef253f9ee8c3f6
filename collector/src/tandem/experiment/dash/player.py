"""The player's loop: choose, request, take, until everything has come; the emulated buffer empties meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from tandem.experiment.base import Output, Stop, StoppedError
from tandem.experiment.dash import mpd
from tandem.experiment.dash.abr import BbaRule, BolaRule, Context, DynamicRule, FixedRule, Loaded, Rule, ThroughputRule
from tandem.experiment.dash.fetch import past_deadline
from tandem.experiment.dash.link import Link
from tandem.experiment.dash.model import Period, Representation, Resource, Segment
from tandem.experiment.dash.mpd import LONGEST_BYTES
from tandem.experiment.dash.play import Play, difference
from tandem.experiment.dash.playback import Glimpse, Playback
from tandem.experiment.dash.request import Request

_INDEX_BYTES = 4 << 20
_INIT_BYTES = 16 << 20
_EDGE_S = 1e-3
"""Segments of two representations begin at the same instant when they differ by less."""


def rule_for(request: Request, bitrates: tuple[int, ...]) -> Rule:
    """The rule that was asked for."""
    rules: dict[str, Callable[[], Rule]] = {
        "fixed": lambda: FixedRule(bitrates, request.fixed_index),
        "throughput": lambda: ThroughputRule(bitrates),
        "bba": lambda: BbaRule(bitrates, request.bba_reservoir_s, request.bba_cushion_s),
        "bola-e": lambda: BolaRule(bitrates, request.stable_buffer_s),
        "dynamic": lambda: DynamicRule(bitrates, request.stable_buffer_s),
    }
    return rules[request.abr]()


class Player:
    """Plays over ``link``. After ``run``, also when it raised, ``play`` has what was measured."""

    def __init__(self, request: Request, link: Link, output: Output, stop: Stop) -> None:
        self._request, self._link, self._output, self._stop = request, link, output, stop
        self.play = Play(
            Playback(request.startup_buffer_s, request.resume_buffer_s),
            time.monotonic_ns(),
            request.kind,
            request.primary.name,
        )
        self._initialized: set[Resource] = set()
        self._indexed: dict[tuple[float, str], Representation] = {}
        self._rule: Rule | None = None
        self._bitrates: tuple[int, ...] = ()

    @property
    def player(self) -> dict[str, Any]:
        """Who played, for the result."""
        return {"name": "own", "abr": self._request.abr}

    def glimpse(self, now_s: float) -> Glimpse:
        """How the play stands at ``now_s`` of its clock. From any thread."""
        return self.play.playback.glimpse(now_s)

    def run(self) -> None:
        """Play to the end. MpdError, FetchError, StoppedError."""
        play, request = self.play, self._request
        url = f"{self._link.root}/v1/content/{request.content}/{request.mpd}"
        manifest = self._link.get(Resource(url), keep=LONGEST_BYTES)
        presentation = mpd.parse(manifest.content, url)
        until_s = request.seconds if request.seconds is not None else float("inf")
        play.duration_s = presentation.duration_s
        position_s = presentation.periods[0].start_s
        end_s = position_s + until_s
        for period in presentation.periods:
            position_s = max(position_s, period.start_s)
            while position_s < end_s - _EDGE_S:
                taken_s = self._segment(period, position_s)
                if taken_s is None:
                    break
                position_s = taken_s
        play.loaded_s = play.now()
        play.playback.all_loaded(play.loaded_s)
        self._watch_to_the_end()

    def _segment(self, period: Period, position_s: float) -> float | None:
        """Load the next segment; where it ends, None when the period has no more."""
        ladder = period.video.representations
        upcoming = self._next(self._ready(period, ladder[0]), position_s)
        if upcoming is None:
            return None
        self._await_room(upcoming.duration_s)
        bitrates = tuple(r.bandwidth_bit_per_s for r in ladder)
        if self._rule is None or bitrates != self._bitrates:
            self._rule, self._bitrates = rule_for(self._request, bitrates), bitrates
        playback, play = self.play.playback, self.play
        playback.advance(play.now())
        chosen = self._rule.choose(
            Context(play.now(), playback.level_s, upcoming.duration_s, playback.state == "stalled")
        )
        if chosen.wait_s > 0:
            self._sleep(chosen.wait_s)
        representation = self._ready(period, ladder[chosen.index])
        segment = self._next(representation, position_s)
        if segment is None:
            return None
        if representation.initialization is not None and representation.initialization not in self._initialized:
            self._link.get(representation.initialization, keep=_INIT_BYTES)
            self._initialized.add(representation.initialization)
        stalled_before_s = playback.stalled_s
        paths_before = self._link.by_path()
        connects = self._link.connects
        playback.advance(play.now())
        buffer_before_s = playback.level_s
        fetched = self._link.get(segment.media)
        paths_after = self._link.by_path() if self._link.connects == connects else None
        # The clock of a segment is that of its last byte, not of what we did since.
        end_s = max((fetched.last_byte_ns - play.begun_ns) / 1e9, playback.now_s)
        request_s = (fetched.requested_ns - play.begun_ns) / 1e9
        playback.advance(end_s)
        stalled_s = playback.stalled_s - stalled_before_s
        playback.add(end_s, segment.duration_s)
        self._rule.loaded(
            Loaded(
                chosen.index, fetched.size_bytes, request_s, end_s, segment.duration_s, playback.level_s, stalled_s > 0
            )
        )
        play.tell(
            self._output,
            segment,
            fetched,
            representation,
            index=chosen.index,
            rule=chosen.rule,
            buffer_before_ms=buffer_before_s * 1000,
            stall_ms=stalled_s * 1000,
            carried=difference(paths_before, paths_after),
            level_s=playback.level_s,
        )
        return segment.start_s + segment.duration_s

    def _ready(self, period: Period, representation: Representation) -> Representation:
        """``representation`` with its segments, for which its index may have to be read."""
        if representation.index is None:
            return representation
        key = (period.start_s, representation.id)
        if key not in self._indexed:
            found = self._link.get(representation.index, keep=_INDEX_BYTES)
            self._indexed[key] = mpd.with_index(representation, found.content, period.start_s)
        return self._indexed[key]

    @staticmethod
    def _next(representation: Representation, position_s: float) -> Segment | None:
        """The first segment that is not over at ``position_s``, or nearly: representations need not be cut alike."""
        for segment in representation.segments:
            if segment.start_s + segment.duration_s > position_s + max(_EDGE_S, segment.duration_s * 0.01):
                return segment
        return None

    def _await_room(self, segment_s: float) -> None:
        """Wait until the segment fits into the buffer. One longer than the whole buffer is loaded when it is empty."""
        playback = self.play.playback
        playback.advance(self.play.now())
        most_s = max(0.0, self._request.buffer_max_s - segment_s)
        # Before playback begins nothing empties the buffer.
        if playback.state == "playing" and playback.level_s > most_s:
            self._sleep(playback.level_s - most_s)

    def _watch_to_the_end(self) -> None:
        playback = self.play.playback
        while playback.state != "ended":
            self._sleep(max(playback.level_s, 1e-3))

    def _sleep(self, seconds: float) -> None:
        left_s = (self._link.deadline_ns - time.monotonic_ns()) / 1e9
        if self._stop.wait(max(0.0, min(seconds, left_s))):
            raise StoppedError
        self.play.playback.advance(self.play.now())
        if seconds > left_s:
            raise past_deadline()
