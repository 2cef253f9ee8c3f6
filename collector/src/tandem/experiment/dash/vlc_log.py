"""What VLC 3 says with ``-vv`` (``--no-color``), as far as a play needs it: lines to events, and events with their times to startup and
stalls. Pure. A line that is none of these says nothing; VLC's words are no contract, so a log without them measures nothing rather than
wrong.

VLC tells once a second how far it has read for the decoder (``cached.i_time``), which is ahead of the picture by its caching. It does not
tell when the picture stops, only when it fills up again; so the picture's clock is kept here: it runs from the moment playback begins or
goes on, and stops where what had been read ends.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from tandem.experiment.dash.playback import Stall

Kind = Literal["version", "request", "position", "buffering", "ready", "end", "draining", "error"]

LONGEST = 4096
"""Characters of a line that are looked at."""
_MOST_REQUESTS = 100_000

_PATTERNS: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("position", re.compile(r"adaptive demux debug: cached\.i_time \(([0-9]{1,18})\)")),
    ("request", re.compile(r"adaptive demux debug: Retrieving (\S+)")),
    ("buffering", re.compile(r"main input debug: Buffering [0-9]{1,3}%")),
    ("ready", re.compile(r"main input debug: Decoder wait done")),
    ("end", re.compile(r"main input debug: EOF reached")),
    ("draining", re.compile(r"main input debug: waiting decoder fifos to empty")),
    ("version", re.compile(r"main libvlc debug: VLC media player - (\S.{0,80})")),
    ("error", re.compile(r"error: (.{1,300})")),
)


@dataclass(frozen=True, slots=True)
class Event:
    """``value``: what the line says beside its kind; a position is whole microseconds of the video."""

    kind: Kind
    value: str = ""


def read(line: str) -> Event | None:
    """The event in a line; None when it has none."""
    text = line[:LONGEST]
    for kind, pattern in _PATTERNS:
        found = pattern.search(text)
        if found is not None:
            return Event(kind, found[1].strip() if pattern.groups else "")
    return None


@dataclass(slots=True)
class Account:
    """A play by its events. Times in seconds of the caller's clock, which must not go back; ``None``: not (yet) heard.

    ``started_s``: the picture began; ``ended_s``: it stood at its end. ``requests``: URLs with their times.
    """

    version: str | None = None
    error: str | None = None
    started_s: float | None = None
    ended_s: float | None = None
    stalls: list[Stall] = field(default_factory=list)
    requests: list[tuple[float, str]] = field(default_factory=list)
    _filling: bool = True
    _since_s: float = 0.0
    """When the picture began or went on,"""
    _from_s: float = 0.0
    """and with which second of the video."""
    _read_s: float = 0.0
    _still: bool = False
    """The position was the same twice: nothing more to read."""
    _over: bool = False

    def hear(self, now_s: float, event: Event) -> None:
        """Take the next event."""
        kind = event.kind
        if kind == "version":
            self.version = self.version or event.value
        elif kind == "error":
            self.error = event.value
        elif kind == "request":
            if len(self.requests) < _MOST_REQUESTS:
                self.requests.append((now_s, event.value))
        elif self._over:
            if kind == "draining":
                self.ended_s = now_s
        elif kind == "position":
            self._reach(now_s, int(event.value) / 1e6)
        elif kind == "buffering":
            if self.started_s is not None and not self._filling:
                self._filling = True
                self._since_s = min(self._empty_s, now_s)
                self._from_s = self._read_s
        elif kind == "ready":
            self._ready(now_s)
        elif kind == "end" and self.started_s is not None:
            self._over, self.ended_s = True, now_s

    def _reach(self, now_s: float, reached_s: float) -> None:
        """VLC has read on, or has not. It may go on after a pause without filling up again ("jitter ignored"): the picture stood still."""
        if reached_s <= self._read_s:
            self._still = True
            return
        if self.started_s is not None and not self._filling and self._still and now_s > self._empty_s:
            empty_s = self._empty_s
            self.stalls.append(Stall(empty_s, now_s - empty_s, self._read_s))
            self._since_s, self._from_s = now_s, self._read_s
        self._read_s, self._still = reached_s, False

    def _ready(self, now_s: float) -> None:
        if self.started_s is None:
            self.started_s = now_s
        elif self._filling:
            self.stalls.append(Stall(self._since_s, now_s - self._since_s, self._from_s))
        else:
            return
        self._filling, self._still = False, False
        self._since_s = now_s

    @property
    def _empty_s(self) -> float:
        """When the picture stands at the end of what has been read."""
        return self._since_s + max(0.0, self._read_s - self._from_s)

    def shown_s(self, now_s: float) -> float:
        """The picture's second of the video."""
        if self.started_s is None or self._filling:
            return self._from_s
        return min(self._from_s + max(0.0, now_s - self._since_s), max(self._read_s, self._from_s))

    def still_s(self, now_s: float) -> float:
        """For how long the picture has stood still by now; 0 while it runs, before it began and after its end."""
        open_s = 0.0
        if self.started_s is not None and not self._over:
            if self._filling:
                open_s = now_s - self._since_s
            elif self._still:
                open_s = now_s - self._empty_s
        return max(0.0, open_s)

    def stalled_s(self, now_s: float) -> float:
        """All stalls so far, one that goes on until now."""
        return sum(stall.duration_s for stall in self.stalls) + self.still_s(now_s)

    def give_up(self, now_s: float) -> None:
        """The play was ended from outside: a stall that goes on ends here."""
        if self.started_s is None or self._over:
            return
        if self._filling:
            self.stalls.append(Stall(self._since_s, max(0.0, now_s - self._since_s), self._from_s))
        elif self._still and now_s > self._empty_s:
            self.stalls.append(Stall(self._empty_s, now_s - self._empty_s, self._read_s))
