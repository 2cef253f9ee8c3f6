"""VLC 3 without a window as the player: it chooses, buffers, decodes and plays; what it requests goes over the measured connection, and its
log says how it went. The same ``Play`` comes of it as of our own player.

Its log (``-vv --no-color``), as far as a play needs it: lines to events, and events with their times to startup and stalls (``Account``;
pure). A line that is none of these says nothing; VLC's words are no contract, so a log without them measures nothing rather than wrong.
VLC logs once a second how far it has read for the decoder (``cached.i_time``), which is ahead of the picture by its caching. It does not
log when the picture stops, only when it fills up again; so the picture's clock is kept here: it runs from the moment playback begins or
goes on, and stops where what had been read ends.
"""

from __future__ import annotations

import contextlib
import os
import queue
import re
import selectors
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Literal

from tandem.experiment.base import MissingRequirementError, Output
from tandem.experiment.dash import mpd
from tandem.experiment.dash.connection import Fetched, FetchError, Link
from tandem.experiment.dash.mpd import Representation, Resource, Segment
from tandem.experiment.dash.mpd_xml import LONGEST_BYTES, ByteRange, MpdError
from tandem.experiment.dash.play import Glimpse, Request, Stall, State, difference, play_of

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


_NOBODY = 65534
_CAP_SETUID = 1 << 7
_LINE_BYTES = 65536
_TERM_S = 3.0
_VERSION_S = 30.0
"""On a Pi the first start reads every plugin."""
_QUIET = ("--no-lua", "--no-metadata-network-access", "--no-media-library", "--no-osd", "--no-spu", "--no-audio")


def command() -> list[str]:
    """How VLC is started here, ``$TANDEM_VLC`` before the one that is installed; MissingRequirementError without one."""
    program, setpriv = os.environ.get("TANDEM_VLC") or shutil.which("vlc"), shutil.which("setpriv")
    if program is None or not os.access(program, os.X_OK):
        raise MissingRequirementError("no VLC here; hint: apt-get install vlc-bin vlc-plugin-base, or player = own")
    if setpriv is None:
        raise MissingRequirementError("no setpriv here; hint: apt-get install util-linux")
    # It must not outlive us, has no use for the collector's capabilities, and refuses to run as root.
    rights = ["--pdeathsig", "KILL", "--inh-caps=-all", "--ambient-caps=-all", "--no-new-privs"]
    if os.geteuid() == 0:
        if not _may_become_another():
            raise MissingRequirementError(
                "VLC refuses to run as root, and this process may not become another user; "
                "hint: start the collector as a user of its own, or player = own"
            )
        user = _user(program)
        rights += [f"--reuid={user}", f"--regid={user}", "--clear-groups", "--bounding-set=-all"]
    return [setpriv, *rights, "--", program]


def there() -> bool:
    try:
        command()
    except MissingRequirementError:
        return False
    return True


def trouble() -> str | None:
    """Why the VLC that is installed does not start as the experiment starts it; None where it does. MissingRequirementError without one."""
    start = command()
    with tempfile.TemporaryDirectory(prefix="tandem-vlc-") as home:
        version, environment = [*start, "--version"], _environment(home)
        try:
            done = subprocess.run(
                version, capture_output=True, text=True, timeout=_VERSION_S, check=False, env=environment
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
    if done.returncode != 0 or not done.stdout.strip():
        return " ".join((done.stderr.strip().splitlines() or [f"it ended with status {done.returncode}"])[-1].split())
    return None


def _environment(home: str) -> dict[str, str]:
    return {"HOME": home, "LANG": "C", "PATH": os.environ.get("PATH", os.defpath)}


def _may_become_another() -> bool:
    """Whether this thread has CAP_SETUID; root on the bench keeps the unit's capabilities alone (collector/system/tandem.service)."""
    effective = re.search(r"^CapEff:\s*(\w+)", Path("/proc/thread-self/status").read_text(), re.MULTILINE)
    return effective is None or bool(int(effective[1], 16) & _CAP_SETUID)


def _user(program: str) -> int:
    """Who VLC is when we are root: whoever owns the program, who can read it; nobody where that is root."""
    return Path(program).stat().st_uid or _NOBODY


def arguments(url: str, request: Request) -> list[str]:
    """VLC's own: play ``url`` once, without showing it. Its caching is the video that it wants before the picture (goes on)."""
    caching, longest = (f"{s * 1000:.0f}" for s in (request.startup_buffer_s, request.buffer_max_s))
    return [
        "-I", "dummy", "--vout", "dummy", "--aout", "dummy", "-vv", "--no-color", *_QUIET, "--avcodec-hw", "none", "--play-and-exit",
        "--adaptive-logic", request.vlc_logic, "--adaptive-maxbuffer", longest, "--network-caching", caching,
        *([] if request.seconds is None else ["--stop-time", f"{request.seconds:g}"]), url, "vlc://quit",
    ]  # fmt: skip


class Vlc:
    """One VLC, started by ``start`` (``command`` and ``arguments``). ``home``: a folder of its own, which it can write to."""

    def __init__(self, start: Sequence[str], home: str) -> None:
        if os.geteuid() == 0:
            user = _user(start[list(start).index("--") + 1])
            os.chown(home, user, user)
        environment = {**_environment(home), "XDG_RUNTIME_DIR": home}
        self.events: queue.SimpleQueue[tuple[int, Event]] = queue.SimpleQueue()
        self.heard_ns = time.monotonic_ns()
        """When it last wrote a line, CLOCK_MONOTONIC."""
        self.words = ""
        try:
            self._process = subprocess.Popen(
                list(start),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            raise MissingRequirementError(f"VLC cannot be started: {error.strerror}") from error
        self._thread = threading.Thread(target=self._listen, args=(self._process.stderr,), name="vlc", daemon=True)
        self._thread.start()

    @property
    def status(self) -> int | None:
        return self._process.poll()

    def end(self) -> int:
        """End it and whatever it started; its exit status. Its last lines have been heard then."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(_TERM_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
        status = self._process.wait()
        with contextlib.suppress(ProcessLookupError, PermissionError):  # it left nothing behind
            os.killpg(self._process.pid, signal.SIGKILL)
        self._thread.join()
        return status

    def _listen(self, log: IO[bytes] | None) -> None:
        if log is None:
            return
        with log:
            while line := log.readline(_LINE_BYTES):
                self.heard_ns = time.monotonic_ns()
                text = line.decode("utf-8", "replace").rstrip()
                event = read(text)
                if event is not None:
                    self.events.put((self.heard_ns, event))
                elif text:
                    self.words = text[:300]


_HEAD_BYTES = 16384
_SEND_BUFFER_BYTES = 1 << 16
"""Small, so that what the player has not taken does not look like taken."""
_WAKE_S = 0.1
_REQUEST = re.compile(rb"GET (/[!-~]{0,4000}) HTTP/1\.[01]\r\n")
_RANGE = re.compile(rb"\r\nrange:[ \t]*bytes=([0-9]{1,15})-([0-9]{0,15})[ \t]*\r\n", re.IGNORECASE)


class GoneError(Exception):
    """The player no longer takes this answer."""


def parse(head: bytes) -> tuple[str, ByteRange | None]:
    """Path and query of a request's head (with its empty line), and the bytes wanted (None: all). Pure; FetchError."""
    line = _REQUEST.match(head)
    if line is None:
        raise FetchError(f"VLC: no GET request: {head[:60]!r}", again=False)
    part = None
    found = _RANGE.search(head)
    if found is not None:
        first, last = int(found[1]), found[2]
        if last:
            if int(last) < first:
                raise FetchError(f"VLC: a range that ends before it begins: {found[0]!r}", again=False)
            part = ByteRange(first, int(last))
        elif first:
            raise FetchError(f"VLC: a range without an end: {found[0]!r}", again=False)
    return line[1].decode("ascii"), part


def _head(length: int | None, part: ByteRange | None) -> bytes:
    lines = [f"HTTP/1.1 {'200 OK' if part is None else '206 Partial Content'}"]
    lines += [] if length is None else [f"Content-Length: {length}"]
    lines += [] if part is None else [f"Content-Range: bytes {part.first}-{part.last}/*"]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


class Relay:
    """Between a player that knows only a URL and the measured connection: an HTTP server on loopback, for that player alone.

    Each request goes out over ``Link`` (its session, primary path and statistics) and the answer goes back as it comes, piece by piece, so
    that the player's own estimate of throughput sees the network's rhythm. One request at a time, handed to ``serve``, which calls
    ``fetch``."""

    def __init__(self, link: Link, serve: Callable[[Relay, str, ByteRange | None], None]) -> None:
        self._link, self._serve = link, serve
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._heads: dict[socket.socket, bytes] = {}
        self._out: socket.socket | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def step(self) -> None:
        """Serve what waits, or wait for at most a tenth of a second. What ``serve`` raises."""
        for key, _ in self._selector.select(_WAKE_S):
            if key.fileobj is self._listener:
                connection, _ = self._listener.accept()
                connection.setblocking(False)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)
                self._heads[connection] = b""
                self._selector.register(connection, selectors.EVENT_READ)
            elif isinstance(key.fileobj, socket.socket):
                self._read(key.fileobj)

    def _read(self, connection: socket.socket) -> None:
        try:
            piece = connection.recv(_HEAD_BYTES)
        except BlockingIOError:
            return
        except OSError:
            piece = b""
        head = self._heads[connection] + piece
        if not piece or len(head) > _HEAD_BYTES:
            self._drop(connection)
            return
        end = head.find(b"\r\n\r\n")
        self._heads[connection] = head if end < 0 else head[end + 4 :]
        if end >= 0:
            self._out = connection
            try:
                self._serve(self, *parse(head[: end + 4]))
            except GoneError:
                self._link.close()  # the rest of the answer is still on its way over the measured connection
                self._drop(connection)
            finally:
                self._out = None

    def fetch(self, target: str, part: ByteRange | None, keep: int | None) -> Fetched:
        """Have the request that is served answered over the link. ``keep``: as of ``Link.get``. GoneError, StoppedError, FetchError."""
        begun = False

        def take(length: int | None, content: memoryview) -> None:
            """On to the player, at its pace. The head goes with the first of the body: until then the request may be made again."""
            nonlocal begun
            if not begun:
                begun = True
                self._send(memoryview(_head(length, part)))
            self._send(content)

        fetched = self._link.get(Resource(self._link.root + target, part), keep, take)
        if not begun:
            take(0, memoryview(b""))
        return fetched

    def _send(self, content: memoryview) -> None:
        connection = self._out
        while content and connection is not None:
            self._link.check()
            try:
                content = content[connection.send(content) :]
            except BlockingIOError:
                with selectors.DefaultSelector() as room:
                    room.register(connection, selectors.EVENT_WRITE)
                    room.select(_WAKE_S)
            except OSError as error:
                raise GoneError from error

    def _drop(self, connection: socket.socket) -> None:
        self._selector.unregister(connection)
        del self._heads[connection]
        connection.close()

    def close(self) -> None:
        for connection in list(self._heads):
            self._drop(connection)
        self._selector.close()
        self._listener.close()


_SILENT_S = 30.0
"""VLC logs its position once a second while a presentation is open; with nothing to wait for, one that is silent so long hangs."""

_MOST_REQUESTED = 3
"""Times of one segment. VLC 3 takes a SegmentList with a SegmentTimeline for the first segment, without end."""


def by_target(presentation: mpd.Presentation, root: str) -> dict[str, tuple[Representation, Segment]]:
    """Which segment a request for a path means. MpdError when the manifest does not give each a URL of its own under ``root``: then a
    request would not say which, or would go round the measured connection."""
    found: dict[str, tuple[Representation, Segment]] = {}
    for period in presentation.periods:
        for r in period.video.representations:
            if r.index is not None or any(s.media.range is not None for s in r.segments):
                raise MpdError("segments by byte range: VLC is followed only where each has a URL of its own")
            for place in (*(s.media for s in r.segments), *(() if r.initialization is None else (r.initialization,))):
                if not place.url.startswith(root + "/"):
                    raise MpdError(f"{place.url[:120]!r} is not on this server")
            found.update({s.media.url.removeprefix(root): (r, s) for s in r.segments})
    return found


class VlcPlayer:
    """Plays over ``link``. After ``run``, also when it raised, ``play`` has what was measured, and VLC has ended.
    MissingRequirementError at once where there is no VLC."""

    def __init__(self, request: Request, link: Link, output: Output) -> None:
        self._request, self._link, self._output = request, link, output
        self._start = command()
        self.play = play_of(request)
        self._mpd_target = f"/v1/content/{request.content}/{request.mpd}"
        self._segments: dict[str, tuple[Representation, Segment]] | None = None
        self._vlc: Vlc | None = None
        self._account = Account()
        self._hearing = threading.Lock()
        self._requested: Counter[str] = Counter()
        self._came_s = self._loaded_s = 0.0
        self._served_ns = 0

    @property
    def player(self) -> dict[str, Any]:
        return {"name": "vlc", "version": self._account.version, "logic": self._request.vlc_logic}

    def glimpse(self, now_s: float) -> Glimpse:
        """How the play stands at ``now_s`` of its clock, by VLC's log so far. From any thread."""
        if self._segments is not None:  # from the manifest's request on the play's clock is what it stays
            self._hear()
        account, playback = self._account, self.play.playback
        with self._hearing:
            shown_s = account.shown_s(now_s)
            if playback.state == "ended":  # settled
                return Glimpse("ended", 0.0, shown_s, playback.stalled_s)
            state: State = "starting" if account.started_s is None else "playing"
            if account.still_s(now_s) > 0:
                state = "stalled"
            return Glimpse(state, max(0.0, self._came_s - shown_s), shown_s, account.stalled_s(now_s))

    def run(self) -> None:
        """Play to the end. MpdError, FetchError, StoppedError, MissingRequirementError."""
        request = self._request
        with (
            contextlib.closing(Relay(self._link, self._serve)) as relay,
            tempfile.TemporaryDirectory(prefix="tandem-vlc-") as home,
        ):
            self._vlc = Vlc([*self._start, *arguments(relay.url + self._mpd_target, request)], home)
            try:
                self._watch(relay, self._vlc)
            finally:
                status = self._vlc.end()
                self._hear()
                self._settle()
        self._judge(status)

    def _watch(self, relay: Relay, vlc: Vlc) -> None:
        while vlc.status is None:
            self._link.check()
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
        """Take what VLC has said. By the thread that relays, and while that waits for a segment by the one that writes its records."""
        if self._vlc is None:
            return
        with self._hearing:
            while not self._vlc.events.empty():
                heard_ns, event = self._vlc.events.get()
                # What it said before it requested the manifest (its version) is at 0.
                self._account.hear(max(0.0, (heard_ns - self.play.begun_ns) / 1e9), event)

    def _settle(self) -> None:
        """The account's figures into the play's, whose emulated buffer was not used."""
        account, playback, now_s = self._account, self.play.playback, self.play.now()
        account.give_up(now_s)
        playback.now_s = now_s if account.ended_s is None else account.ended_s
        playback.started_s, playback.ended_s = account.started_s, account.ended_s
        playback.stalls, playback.state = account.stalls, "ended"
        self.play.loaded_s = self._loaded_s if self.play.shown else None

    def _serve(self, relay: Relay, target: str, part: ByteRange | None) -> None:
        """Answer a request of VLC, and take down what came of it. What ``Relay.fetch`` raises; MpdError."""
        link, play = self._link, self.play
        self._hear()
        is_mpd = target == self._mpd_target
        if is_mpd and self._segments is None:
            play.begun_ns = time.monotonic_ns()
        now_s = play.now()
        buffer_before_s = max(0.0, self._came_s - self._account.shown_s(now_s))
        stalled_before_s = self._account.stalled_s(now_s)
        paths_before, connects_before = link.by_path(), link.connects
        fetched = relay.fetch(target, part, LONGEST_BYTES if is_mpd else None)
        self._served_ns = fetched.last_byte_ns
        if is_mpd:
            presentation = mpd.parse(fetched.content, relay.url + self._mpd_target)
            self._segments = by_target(presentation, relay.url)
            play.duration_s = presentation.duration_s
            return
        known = (self._segments or {}).get(target)
        if known is None:
            return  # an initialization: not in the segments' figures
        self._requested[target] += 1
        if self._requested[target] > _MOST_REQUESTED:
            why = f"VLC asks for {target[-80:]} again and again: it cannot follow this manifest"
            raise FetchError(why, again=False)
        representation, segment = known
        self._hear()
        end_s = (fetched.last_byte_ns - play.begun_ns) / 1e9
        self._came_s = max(self._came_s, segment.start_s + segment.duration_s)
        self._loaded_s = end_s
        play.add(
            self._output,
            segment,
            fetched,
            representation,
            carried=difference(paths_before, link.by_path()) if connects_before == link.connects else None,
            level_s=max(0.0, self._came_s - self._account.shown_s(end_s)),
            index=None,
            rule=f"vlc-{self._request.vlc_logic}",
            buffer_before_ms=buffer_before_s * 1000,
            stall_ms=max(0.0, self._account.stalled_s(end_s) - stalled_before_s) * 1000,
        )
