"""A play: its emulated buffer (``Playback``), emptied by a clock that the caller gives; what has been played (``Play``); our own player's
loop (``Player``); and its records.
"""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tandem.experiment.base import Output, Stop, StoppedError, record
from tandem.experiment.dash import mpd
from tandem.experiment.dash.abr import BbaRule, BolaRule, Context, DynamicRule, FixedRule, Loaded, Rule, ThroughputRule
from tandem.experiment.dash.connection import Fetched, Link, LinkParameters, past_deadline
from tandem.experiment.dash.mpd import Period, Representation, Resource, Segment
from tandem.experiment.dash.mpd_xml import LONGEST_BYTES
from tandem.experiment.parameters import parameter
from tandem.schema.metrics import DASH, DASH_SEGMENT

RULES = ("fixed", "throughput", "bba", "bola-e", "dynamic")
PLAYERS = ("own", "vlc", "auto")
VLC_LOGICS = ("predictive", "nearoptimal", "rate", "lowest", "highest")
"""VLC 3's own names, less ``fixedrate``, which is ``abr`` fixed. Its default is nearoptimal."""


@dataclass(frozen=True, slots=True)
class Request(LinkParameters):
    """A play, checked. ``seconds`` None: all of it."""

    # fmt: off
    content: str = parameter("the presentation's name on the server (tandem-server dash build)", default="synthetic")
    mpd: str = parameter("its manifest", default="6s-number.mpd")
    player: str = parameter("our own; VLC; auto: VLC where one is installed, else our own", default="own", choices=PLAYERS)
    vlc_logic: str = parameter("with player vlc: its --adaptive-logic, in place of abr", default="rate", choices=VLC_LOGICS)
    abr: str = parameter("who chooses the representation", default="dynamic", choices=RULES)
    fixed_index: int = parameter("with abr fixed: which, 0 for the lowest bitrate", "1", default=0, minimum=0, maximum=499)
    seconds: float | None = parameter("how much of the video to play; by default all", "s", minimum=0.1, maximum=86400)
    startup_buffer_s: float = parameter("playback begins with so much in the buffer", "s", default=2.0, minimum=0, maximum=60)
    resume_buffer_s: float = parameter("and goes on after a stall with so much", "s", default=2.0, minimum=0, maximum=60)
    buffer_max_s: float = parameter("no request that would fill it beyond", "s", default=60.0, minimum=1, maximum=600)
    stable_buffer_s: float = parameter("of bola-e and dynamic", "s", default=12.0, minimum=1, maximum=600)
    bba_reservoir_s: float = parameter("by default 90/240 of buffer_max_s", "s", minimum=0.1, maximum=600)
    bba_cushion_s: float = parameter("by default 126/240 of buffer_max_s", "s", minimum=0.1, maximum=600)
    deadline_s: float = parameter("the whole run", "s", default=1500.0, minimum=1, maximum=90000)
    # fmt: on


State = Literal["starting", "playing", "stalled", "ended"]


@dataclass(frozen=True, slots=True)
class Stall:
    """Playback stood still: from when, for how long, at which second of the video."""

    start_s: float
    duration_s: float
    media_s: float


@dataclass(frozen=True, slots=True)
class Glimpse:
    """A play at one instant. ``level_s``: video in the buffer; ``played_s``: shown so far; ``stalled_s``: all stalls so far, an open one
    until now."""

    state: State
    level_s: float
    played_s: float
    stalled_s: float


@dataclass(slots=True)
class Playback:
    """Playback begins when ``startup_s`` of video are there, goes on after a stall with ``resume_s``, and at the end with what is
    left. ``advance`` must be called with times that do not go back."""

    startup_s: float
    resume_s: float
    now_s: float = 0.0
    level_s: float = 0.0
    played_s: float = 0.0
    state: State = "starting"
    started_s: float | None = None
    ended_s: float | None = None
    stalls: list[Stall] = field(default_factory=list)
    _stalled_since_s: float = 0.0
    _whole: bool = False
    _turning: threading.RLock = field(default_factory=threading.RLock, repr=False, compare=False)

    def advance(self, now_s: float) -> None:
        """Play until ``now_s``. A stall begins at the instant at which the buffer was empty."""
        with self._turning:
            self._advance(now_s)

    def _advance(self, now_s: float) -> None:
        passed_s = max(0.0, now_s - self.now_s)
        if self.state == "playing":
            shown_s = min(passed_s, self.level_s)
            self.level_s -= shown_s
            self.played_s += shown_s
            if passed_s >= shown_s and self.level_s <= 1e-9:
                self.level_s = 0.0
                empty_s = self.now_s + shown_s
                if self._whole:
                    self.state, self.ended_s = "ended", empty_s
                elif passed_s > shown_s:
                    self.state, self._stalled_since_s = "stalled", empty_s
        self.now_s = max(self.now_s, now_s)

    def add(self, now_s: float, duration_s: float) -> None:
        with self._turning:
            self._advance(now_s)
            self.level_s += duration_s
            self._go_on()

    def all_loaded(self, now_s: float) -> None:
        with self._turning:
            self._advance(now_s)
            self._whole = True
            self._go_on()

    def give_up(self, now_s: float) -> None:
        """Loading has failed or was stopped: an open stall ends here, and what is left in the buffer is not waited for.
        The play is over then, without an ``ended_s``: nobody saw the end."""
        with self._turning:
            self._advance(now_s)
            self._end_stall()
            self.state = "ended"

    def glimpse(self, now_s: float) -> Glimpse:
        """How it stands at ``now_s``, if nothing has come meanwhile; nothing is changed by looking."""
        with self._turning:
            twin = copy.copy(self)
            twin._advance(now_s)
            return Glimpse(twin.state, twin.level_s, twin.played_s, twin.stalled_s)

    def _go_on(self) -> None:
        if self.state == "starting" and (self.level_s >= self.startup_s or self._whole):
            self.state, self.started_s = "playing", self.now_s
        elif self.state == "stalled" and (self.level_s >= self.resume_s or self._whole):
            self._end_stall()
            self.state = "playing"
        if self._whole and self.state == "playing" and self.level_s <= 0:
            self.state, self.ended_s = "ended", self.now_s

    def _end_stall(self) -> None:
        if self.state == "stalled":
            long_s = self.now_s - self._stalled_since_s
            self.stalls.append(Stall(self._stalled_since_s, long_s, self.played_s))

    @property
    def stalled_s(self) -> float:
        """All stalls so far, an open one until now."""
        open_s = self.now_s - self._stalled_since_s if self.state == "stalled" else 0.0
        return sum(stall.duration_s for stall in self.stalls) + open_s


@dataclass(frozen=True, slots=True)
class Shown:
    """A segment that came: which, of how many bytes, at which second of the video, how long."""

    representation: Representation
    size_bytes: int
    media_s: float
    duration_s: float


_SEGMENT_FIELDS = tuple(field.name for field in DASH_SEGMENT.fields)


@dataclass(slots=True)
class Play:
    """What has been played: the segments that came, the log (a row a segment), and the play's clock. Whoever plays fills it. Times in
    seconds since the manifest was requested. ``kind``, ``path``: its arm, and the primary path."""

    playback: Playback
    begun_ns: int
    kind: str
    path: str
    shown: list[Shown] = field(default_factory=list)
    log: list[dict[str, Any]] = field(default_factory=list)
    duration_s: float | None = None
    loaded_s: float | None = None
    first_byte_ms: float | None = None

    def now(self) -> float:
        return (time.monotonic_ns() - self.begun_ns) / 1e9

    def add(
        self,
        output: Output,
        segment: Segment,
        fetched: Fetched,
        r: Representation,
        *,
        carried: dict[str, int] | None,
        level_s: float,
        **more: Any,  # noqa: ANN401  any JSON value
    ) -> None:
        """A segment has come: its row into the log and onto ``output``. ``carried``: bytes of each path meanwhile; ``level_s``: of the
        buffer, with this segment in it; ``more``: the row's other keys."""
        self.shown.append(Shown(r, fetched.size_bytes, segment.start_s, segment.duration_s))
        first_byte_ms = (fetched.first_byte_ns - fetched.requested_ns) / 1e6
        if self.first_byte_ms is None:
            self.first_byte_ms = first_byte_ms
        duration_ms = (fetched.last_byte_ns - fetched.requested_ns) / 1e6
        whole = sum(carried.values()) if carried else 0
        row = {
            "number": len(self.shown),
            "requested_s": (fetched.requested_ns - self.begun_ns) / 1e9,
            "media_s": segment.start_s,
            "segment_s": segment.duration_s,
            "representation": r.id,
            "bitrate_bit_per_s": r.bandwidth_bit_per_s,
            "height": r.height,
            "bytes": fetched.size_bytes,
            "first_byte_ms": first_byte_ms,
            "duration_ms": duration_ms,
            "goodput_bit_per_s": fetched.size_bytes * 8000 / duration_ms if duration_ms > 0 else None,
            "buffer_level_ms": level_s * 1000,
            "shares": {path: count / whole for path, count in carried.items()} if carried and whole else None,
            **more,
        }
        self.log.append(row)
        output.line("segment", monotonic_ns=fetched.last_byte_ns, **row)
        fields = {name: rounded(row[name]) for name in _SEGMENT_FIELDS if name in row}
        fields["primary_share"] = rounded(carried.get(self.path, 0) / whole) if carried and whole else None
        record(output, "dash_segment", fields, monotonic_ns=fetched.last_byte_ns, kind=self.kind, path=self.path)


def play_of(request: Request) -> Play:
    r = request
    return Play(Playback(r.startup_buffer_s, r.resume_buffer_s), time.monotonic_ns(), r.kind, r.primary.name)


def difference(before: dict[str, int] | None, after: dict[str, int] | None) -> dict[str, int] | None:
    """What each path carried between two readings of one connection; None when one of them is missing."""
    if before is None or after is None:
        return None
    return {path: max(0, count - before.get(path, 0)) for path, count in after.items()}


def rounded(value: Any) -> Any:  # noqa: ANN401  any JSON value
    """To a thousandth, as records hold it: what nobody can see apart is not sent over a SIM."""
    return round(value, 3) if isinstance(value, float) else value


_INDEX_BYTES = 4 << 20
_INIT_BYTES = 16 << 20
_EDGE_S = 1e-3
"""Segments of two representations begin at the same instant when they differ by less."""


def rule_for(request: Request, bitrates: tuple[int, ...]) -> Rule:
    rules: dict[str, Callable[[], Rule]] = {
        "fixed": lambda: FixedRule(bitrates, request.fixed_index),
        "throughput": lambda: ThroughputRule(bitrates),
        "bba": lambda: BbaRule(bitrates, request.bba_reservoir_s, request.bba_cushion_s),
        "bola-e": lambda: BolaRule(bitrates, request.stable_buffer_s),
        "dynamic": lambda: DynamicRule(bitrates, request.stable_buffer_s),
    }
    return rules[request.abr]()


class Player:
    """Plays over ``link``: choose, request, take, until everything has come; the emulated buffer empties meanwhile. After ``run``, also
    when it raised, ``play`` has what was measured."""

    def __init__(self, request: Request, link: Link, output: Output, stop: Stop) -> None:
        self._request, self._link, self._output, self._stop = request, link, output, stop
        self.play = play_of(request)
        self._initialized: set[Resource] = set()
        self._indexed: dict[tuple[float, str], Representation] = {}
        self._rule: Rule | None = None
        self._bitrates: tuple[int, ...] = ()

    @property
    def player(self) -> dict[str, Any]:
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
        size, duration_s = fetched.size_bytes, segment.duration_s
        self._rule.loaded(Loaded(chosen.index, size, request_s, end_s, duration_s, playback.level_s, stalled_s > 0))
        play.add(
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


EVERY_S = 1.0
_LOOK_S = 0.1
"""How soon a change of state is seen."""


class PlaybackRecords:
    """``with PlaybackRecords(output, play, player.glimpse):`` writes ``dash_playback`` records by a thread of its own: at each
    change of state, every ``EVERY_S`` seconds, and the last of them when the block ends. ``glimpse``: how the play stands at a second of
    its clock, from any thread."""

    def __init__(self, output: Output, play: Play, glimpse: Callable[[float], Glimpse]) -> None:
        self._output, self._play, self._glimpse = output, play, glimpse
        self._over = threading.Event()
        self._written: tuple[int, Glimpse] | None = None
        self._thread = threading.Thread(target=self._run, name="playback", daemon=True)

    def __enter__(self) -> PlaybackRecords:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._look(last=True)

    def _run(self) -> None:
        self._look()
        while not self._over.wait(_LOOK_S):
            self._look()

    def _look(self, *, last: bool = False) -> None:
        now_ns = time.monotonic_ns()
        seen = self._glimpse((now_ns - self._play.begun_ns) / 1e9)
        if self._written is not None:
            written_ns, before = self._written
            unchanged = seen == before if last else seen.state == before.state
            if unchanged and (last or now_ns - written_ns < EVERY_S * 1e9):
                return
        self._written = now_ns, seen
        fields = {
            "state": seen.state,
            "buffer_level_ms": rounded(seen.level_s * 1000),
            "played_s": rounded(seen.played_s),
            "stalled_s": rounded(seen.stalled_s),
        }
        arm = {"kind": self._play.kind, "path": self._play.path}
        record(self._output, "dash_playback", fields, monotonic_ns=now_ns, **arm)


_PLAY_FIELDS = frozenset(field.name for field in DASH.fields)


def play_fields(measured: Mapping[str, Any] | None, play: Play, *, whole: bool, content: str) -> dict[str, Any]:
    """The fields of the ``dash`` record. ``measured``: the result, None when no segment came."""
    fields: dict[str, Any] = {"whole": whole, "content": content, "play_s": play.now(), "segments": len(play.shown)}
    if measured is None:
        return fields
    fields |= {name: value for name, value in measured.items() if name in _PLAY_FIELDS and name != "segments"}
    score = measured["qoe_linear_per_segment"]
    fields["qoe_bit_per_s"] = None if score is None else score * 1000
    carried = {row["path"]: row["share"] for row in measured["subflows"]}
    fields["primary_share"] = carried.get(play.path) if any(carried.values()) else None
    return {name: rounded(value) for name, value in fields.items()}
