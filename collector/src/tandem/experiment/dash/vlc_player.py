"""VLC as the player: it chooses, buffers, decodes and plays; what it asks for goes over the measured connection, and its log tells how it
went. The same ``Play`` comes of it as of our own player."""

from __future__ import annotations

import tempfile
import threading
import time
from collections import Counter
from typing import Any

from tandem.experiment.base import Output, Stop, StoppedError
from tandem.experiment.dash import mpd
from tandem.experiment.dash.fetch import Fetched, FetchError, past_deadline
from tandem.experiment.dash.link import Link
from tandem.experiment.dash.model import Presentation, Representation, Segment
from tandem.experiment.dash.play import Play, difference
from tandem.experiment.dash.playback import Glimpse, Playback, State
from tandem.experiment.dash.relay import Asked, Relay, RequestError
from tandem.experiment.dash.request import Request
from tandem.experiment.dash.vlc_log import Account
from tandem.experiment.dash.vlc_process import Vlc, arguments, command
from tandem.experiment.dash.xml_reading import LONGEST_BYTES, MpdError

_SILENT_S = 30.0
"""VLC logs its position once a second while a presentation is open; with nothing to wait for, one that is silent so long hangs."""

_MOST_ASKED = 3
"""Times of one segment. VLC 3 takes a SegmentList with a SegmentTimeline for the first segment, without end."""


def by_target(presentation: Presentation, root: str) -> dict[str, tuple[Representation, Segment]]:
    """Which segment a request for a path means. MpdError when the manifest does not give each a URL of its own under ``root``: then a
    request would not tell which, or would go round the measured connection."""
    found: dict[str, tuple[Representation, Segment]] = {}
    for period in presentation.periods:
        for r in period.video.representations:
            if r.index is not None or any(s.media.range is not None for s in r.segments):
                raise MpdError(
                    "segments by byte range: VLC is followed only where each has a URL of its own (number, time, list)"
                )
            places = [
                *(() if r.initialization is None else (r.initialization.url,)),
                *(s.media.url for s in r.segments),
            ]
            for url in places:
                if not url.startswith(root + "/"):
                    raise MpdError(f"{url[:120]!r} is not on this server")
            found.update({s.media.url.removeprefix(root): (r, s) for s in r.segments})
    return found


class VlcPlayer:
    """Plays over ``link``. After ``run``, also when it raised, ``play`` has what was measured, and VLC has ended. EnvironmentLackError at
    once where there is no VLC."""

    def __init__(self, request: Request, link: Link, output: Output, stop: Stop) -> None:
        self._request, self._link, self._output, self._stop = request, link, output, stop
        self._start = command()
        self.play = Play(
            Playback(request.startup_buffer_s, request.resume_buffer_s),
            time.monotonic_ns(),
            request.kind,
            request.primary.name,
        )
        self._mpd_target = f"/v1/content/{request.content}/{request.mpd}"
        self._segments: dict[str, tuple[Representation, Segment]] | None = None
        self._relay: Relay | None = None
        self._vlc: Vlc | None = None
        self._account = Account()
        self._hearing = threading.Lock()
        self._asked: Counter[str] = Counter()
        self._came_s = self._loaded_s = 0.0
        self._served_ns = 0
        self._stalled_before_s = 0.0
        self._paths_before: dict[str, int] | None = None
        self._connects_before = 0
        self._buffer_before_s = 0.0

    @property
    def player(self) -> dict[str, Any]:
        """Who played, for the result."""
        return {"name": "vlc", "version": self._account.version, "logic": self._request.vlc_logic}

    def glimpse(self, now_s: float) -> Glimpse:
        """How the play stands at ``now_s`` of its clock, by VLC's log so far. From any thread."""
        if self._segments is not None:  # from the manifest's request on the play's clock is what it stays
            self._hear()
        with self._hearing:
            return self._seen(now_s)

    def _seen(self, now_s: float) -> Glimpse:
        account, playback = self._account, self.play.playback
        if playback.state == "ended":  # settled
            return Glimpse("ended", 0.0, account.shown_s(now_s), playback.stalled_s)
        shown_s = account.shown_s(now_s)
        state: State = "starting" if account.started_s is None else "playing"
        if account.still_s(now_s) > 0:
            state = "stalled"
        return Glimpse(state, max(0.0, self._came_s - shown_s), shown_s, account.stalled_s(now_s))

    def run(self) -> None:
        """Play to the end. MpdError, FetchError, StoppedError, EnvironmentLackError."""
        request = self._request
        self._relay = relay = Relay(self._link, self._stop, self._keep, self._before, self._after)
        try:
            with tempfile.TemporaryDirectory(prefix="tandem-vlc-") as home:
                own = arguments(
                    relay.url + self._mpd_target,
                    request.vlc_logic,
                    request.startup_buffer_s,
                    request.buffer_max_s,
                    request.seconds,
                )
                self._vlc = Vlc([*self._start, *own], home)
                try:
                    self._watch(relay, self._vlc)
                finally:
                    status = self._vlc.end()
                    self._hear()
                    self._settle()
            self._judge(status)
        except RequestError as error:
            raise FetchError(f"VLC: {error}", again=False) from error
        finally:
            relay.close()

    def _watch(self, relay: Relay, vlc: Vlc) -> None:
        while vlc.status is None:
            if self._stop.requested:
                raise StoppedError
            if time.monotonic_ns() > self._link.deadline_ns:
                raise past_deadline()
            relay.step()
            self._hear()
            if time.monotonic_ns() - max(vlc.heard_ns, self._served_ns) > _SILENT_S * 1e9:
                raise FetchError(f"VLC hangs: it has said nothing for {_SILENT_S:g} s", again=False, retry=True)

    def _judge(self, status: int) -> None:
        """VLC has ended by itself: at the end of the video, or not."""
        account = self._account
        if account.ended_s is None or not self.play.shown:
            said = account.error or (self._vlc.words if self._vlc is not None else "") or "it said nothing"
            before = "before it showed anything" if account.started_s is None else "before the end"
            raise FetchError(f"VLC ended {before} (status {status}): {' '.join(said.split())[:200]}", again=False)

    def _hear(self) -> None:
        """Take what VLC has said. By the thread that relays, and while that waits for a segment by the one that tells of the play."""
        if self._vlc is None:
            return
        with self._hearing:
            while not self._vlc.events.empty():
                heard_ns, event = self._vlc.events.get()
                # What it said before it asked for the manifest (its version) is at 0.
                self._account.hear(max(0.0, (heard_ns - self.play.begun_ns) / 1e9), event)

    def _settle(self) -> None:
        """The account's figures into the play's, whose emulated buffer was not used."""
        account, playback, now_s = self._account, self.play.playback, self.play.now()
        account.give_up(now_s)
        playback.now_s = now_s if account.ended_s is None else account.ended_s
        playback.started_s, playback.ended_s = account.started_s, account.ended_s
        playback.stalls, playback.state = account.stalls, "ended"
        self.play.loaded_s = self._loaded_s if self.play.shown else None

    def _keep(self, asked: Asked) -> int | None:
        return LONGEST_BYTES if asked.target == self._mpd_target else None

    def _before(self, asked: Asked) -> None:
        self._hear()
        if self._segments is None and asked.target == self._mpd_target:
            self.play.begun_ns = time.monotonic_ns()
        now_s = self.play.now()
        self._buffer_before_s = max(0.0, self._came_s - self._account.shown_s(now_s))
        self._stalled_before_s = self._account.stalled_s(now_s)
        self._paths_before, self._connects_before = self._link.by_path(), self._link.connects

    def _after(self, asked: Asked, fetched: Fetched) -> None:
        self._served_ns = fetched.last_byte_ns
        if asked.target == self._mpd_target and self._relay is not None:
            presentation = mpd.parse(fetched.content, self._relay.url + self._mpd_target)
            self._segments = by_target(presentation, self._relay.url)
            self.play.duration_s = presentation.duration_s
            return
        known = (self._segments or {}).get(asked.target)
        if known is None:
            return  # an initialization: not in the segments' figures
        self._asked[asked.target] += 1
        if self._asked[asked.target] > _MOST_ASKED:
            raise FetchError(
                f"VLC asks for {asked.target[-80:]} again and again: it cannot follow this manifest", again=False
            )
        representation, segment = known
        self._hear()
        end_s = (fetched.last_byte_ns - self.play.begun_ns) / 1e9
        self._came_s = max(self._came_s, segment.start_s + segment.duration_s)
        self._loaded_s = end_s
        kept = self._connects_before == self._link.connects
        self.play.tell(
            self._output,
            segment,
            fetched,
            representation,
            carried=difference(self._paths_before, self._link.by_path()) if kept else None,
            level_s=max(0.0, self._came_s - self._account.shown_s(end_s)),
            index=None,
            rule=f"vlc-{self._request.vlc_logic}",
            buffer_before_ms=self._buffer_before_s * 1000,
            stall_ms=max(0.0, self._account.stalled_s(end_s) - self._stalled_before_s) * 1000,
        )
