"""A Chromium of our own, spoken to by its DevTools protocol over a pipe, and ended with all that it started."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import select
import shutil
import signal
import tempfile
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_PR_SET_CHILD_SUBREAPER = 36
_PAUSE_S = 0.005


def adopt_orphans() -> None:
    """From now on the orphans of our children are our children."""
    # Cannot fail since Linux 3.4; without it orphans would be init's, as for any program.
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def members(word: str) -> list[int]:
    """The processes whose environment has ``word``, this one excepted."""
    wanted, found = word.encode(), []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            with contextlib.suppress(OSError):  # gone meanwhile, or another's
                if wanted in (folder / "environ").read_bytes():
                    found.append(int(folder.name))
    return found


def end_family(leader: int, word: str) -> bool:
    """Kill the group of ``leader`` and all with ``word``, reap them; whether all have ended within five seconds."""
    until_s = time.monotonic() + 5.0
    others: set[int] = set()
    while True:
        alive = members(word)
        others.update(alive)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(leader, signal.SIGKILL)
        for pid in alive:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        whole = _reaped_group(leader)
        for pid in tuple(others):
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        if whole and not alive:
            return True
        if time.monotonic() > until_s:
            return False
        time.sleep(_PAUSE_S)


def _reaped_group(leader: int) -> bool:
    """Take every exit status of the group that there is; True when no child of it is left."""
    while True:
        try:
            pid, _ = os.waitpid(-leader, os.WNOHANG)
        except ChildProcessError:
            return True
        if pid == 0:
            return False


# ---------------------------------------------------------------------------------------------------------------------
# The DevTools protocol over two pipes: JSON messages, each ended by a zero byte (Chromium's ``--remote-debugging-
# pipe``). What the other end sends is outside bytes: everything that is no message, too long, or not in time is a
# DevToolsError.


_WAKE_S = 0.25
_CHUNK_BYTES = 1 << 16


class DevToolsError(Exception):
    """The browser is gone, silent, or says what is no DevTools message; one line."""


class RefusedError(DevToolsError):
    """The browser answered a command with an error; it lives."""


class TooLateError(DevToolsError):
    """What was waited for did not come in time."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event. ``session``: of the target that it is about, empty for the browser's own."""

    method: str
    params: dict[str, Any]
    session: str


class DevTools:
    """One end of the pipes, used from one thread. ``stop``: looked at while waiting, TooLateError when it says so. ``longest``: bytes that
    a message may have."""

    def __init__(
        self, reading: int, writing: int, stop: Callable[[], bool] = lambda: False, longest: int = 16 << 20
    ) -> None:
        self._reading, self._writing, self._stop, self._longest = reading, writing, stop, longest
        os.set_blocking(reading, False)
        os.set_blocking(writing, False)
        self._buffer = bytearray()
        self._scanned = 0
        self._events: deque[Event] = deque()
        self._answers: dict[int, dict[str, Any]] = {}
        self._number = 0

    def call(
        self, method: str, params: dict[str, Any] | None = None, session: str = "", *, until_s: float
    ) -> dict[str, Any]:
        """Send a command, wait for its answer until ``until_s`` (time.monotonic()). RefusedError, DevToolsError."""
        return self.answer(self.send(method, params, session, until_s=until_s), until_s=until_s)

    def send(self, method: str, params: dict[str, Any] | None = None, session: str = "", *, until_s: float) -> int:
        """Send a command; the number by which ``answer`` knows it."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params or {}}
        if session:
            message["sessionId"] = session
        left = memoryview(json.dumps(message).encode() + b"\0")
        while left:
            try:
                left = left[os.write(self._writing, left) :]
            except BlockingIOError:
                self._await(self._writing, select.POLLOUT, until_s, method)
            except OSError as error:
                raise DevToolsError("the browser has gone") from error
        return self._number

    def answer(self, number: int, *, until_s: float) -> dict[str, Any]:
        while number not in self._answers:
            self._receive(until_s, f"answer {number}")
        answer = self._answers.pop(number)
        if "error" in answer:
            detail = answer["error"].get("message") if isinstance(answer["error"], dict) else answer["error"]
            raise RefusedError(f"DevTools: {str(detail)[:200]}")
        result = answer.get("result", {})
        if not isinstance(result, dict):
            raise DevToolsError("DevTools: an answer whose result is no object")
        return result

    def answered(self, number: int) -> bool:
        return number in self._answers

    def event(self, until_s: float) -> Event | None:
        """The next event; None when none came until ``until_s``. DevToolsError."""
        while not self._events:
            try:
                self._receive(until_s, "an event")
            except TooLateError:
                return None
        return self._events.popleft()

    def _receive(self, until_s: float, what: str) -> None:
        """Take in at least one message."""
        while True:
            end = self._buffer.find(0, self._scanned)
            if end >= 0:
                message = bytes(self._buffer[:end])
                del self._buffer[: end + 1]
                self._scanned = 0
                self._take(message)
                return
            self._scanned = len(self._buffer)
            if len(self._buffer) > self._longest:
                raise DevToolsError(f"DevTools: a message of more than {self._longest} bytes")
            try:
                more = os.read(self._reading, _CHUNK_BYTES)
            except BlockingIOError:
                self._await(self._reading, select.POLLIN, until_s, what)
                continue
            except OSError as error:
                raise DevToolsError("the browser has gone") from error
            if not more:
                raise DevToolsError("the browser has gone")
            self._buffer += more

    def _take(self, message: bytes) -> None:
        try:
            received = json.loads(message)
        except (ValueError, RecursionError) as error:
            raise DevToolsError(f"DevTools: no JSON: {message[:60]!r}") from error
        if not isinstance(received, dict):
            raise DevToolsError(f"DevTools: no message: {message[:60]!r}")
        number, method, params = received.get("id"), received.get("method"), received.get("params", {})
        if isinstance(number, int):
            self._answers[number] = received
        elif isinstance(method, str) and isinstance(params, dict):
            session = received.get("sessionId", "")
            self._events.append(Event(method, params, session if isinstance(session, str) else ""))
        else:
            raise DevToolsError(f"DevTools: no message: {message[:60]!r}")

    def _await(self, descriptor: int, event: int, until_s: float, what: str) -> None:
        poll = select.poll()
        poll.register(descriptor, event)
        while True:
            left_s = until_s - time.monotonic()
            if self._stop():
                raise TooLateError("stopped")
            if left_s <= 0:
                raise TooLateError(f"the browser is silent ({what})")
            if poll.poll(1000 * min(left_s, _WAKE_S)):
                return


# ---------------------------------------------------------------------------------------------------------------------
# Chromium as a process: found, started without a display and with a fresh profile, ended with everything that it
# started. Its descriptors 3 and 4 are the DevTools pipes: when this process dies, however, they close, and Chromium
# ends by itself.


PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
"""Looked for in PATH, in this order: the first has no display and starts fastest."""

FLAGS = (
    "--headless",
    "--remote-debugging-pipe",
    "--no-first-run",
    "--no-default-browser-check",
    "--no-pings",
    "--mute-audio",
    "--window-size=1366,768",
    "--disable-background-networking",
    "--disable-breakpad",
    "--disable-component-update",
    "--disable-crash-reporter",
    "--disable-default-apps",
    "--disable-dev-shm-usage",
    "--disable-domain-reliability",
    "--disable-extensions",
    "--disable-gpu",
    "--disable-quic",
    "--disable-site-isolation-trials",
    "--disable-sync",
    "--disable-features=DialMediaRouteProvider,HttpsUpgrades,MediaRouter,OptimizationHints,SpareRendererForSitePerProcess,Translate",
    "--disk-cache-size=1",
    "--metrics-recording-only",
    "--password-store=basic",
)
"""Of every start: nothing of its own over the network, no cache on the disk, no QUIC, one process for all frames."""


_PREFIX, _LOCK = "tandem-browser-", "lock"
_YOUNG_S = 10.0


class NoBrowserError(RuntimeError):
    """There is no Chromium here, or it cannot be started; one line with a hint."""


def find() -> str | None:
    """The program: ``TANDEM_CHROMIUM``, else the first of ``PROGRAMS`` in PATH; None when there is none. Ubuntu's is a snap, whose
    confinement keeps it from our pipes and folders: passed over."""
    chromium = os.environ.get("TANDEM_CHROMIUM")
    if chromium:
        return shutil.which(chromium)
    return next((found for name in PROGRAMS if (found := shutil.which(name)) and not _is_snap(Path(found))), None)


def _is_snap(program: Path) -> bool:
    if "/snap" in str(program.resolve()):
        return True
    with program.open("rb") as file:
        return b"/snap/bin" in file.read(4096)  # the script of a package that only leads there


class Browser:
    """One running Chromium with a profile of its own, in a folder that goes with it. ``sandbox``: None for on unless root, who must not
    have it. NoBrowserError."""

    def __init__(
        self,
        program: str,
        flags: Sequence[str],
        stop: Callable[[], bool] = lambda: False,
        sandbox: bool | None = None,
        longest: int = 16 << 20,
    ) -> None:
        self.sandbox = os.geteuid() != 0 if sandbox is None else sandbox
        adopt_orphans()
        _sweep()
        self._folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        self._lock = os.open(self._folder / _LOCK, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        ours: list[int] = []
        theirs: list[int] = []
        try:
            # High numbers: 3 and 4 are the browser's, and must not be overwritten before they are copied.
            for reading, writing in (os.pipe2(os.O_CLOEXEC), os.pipe2(os.O_CLOEXEC)):
                for end in (reading, writing):
                    (theirs if len(ours) + len(theirs) in (0, 3) else ours).append(_high(end))
            self._errors = self._folder / "errors"
            words = [program, *FLAGS, f"--user-data-dir={self._folder / 'profile'}", *flags]
            if not self.sandbox:
                words.append("--no-sandbox")
            quiet = _high(os.open(self._errors, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
            try:
                self.pid = os.posix_spawn(
                    program,
                    [*words, "about:blank"],
                    _environment(self._folder),
                    file_actions=[
                        (os.POSIX_SPAWN_DUP2, theirs[0], 3),
                        (os.POSIX_SPAWN_DUP2, theirs[1], 4),
                        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                        (os.POSIX_SPAWN_DUP2, quiet, 1),
                        (os.POSIX_SPAWN_DUP2, quiet, 2),
                    ],
                    setsid=True,
                    setsigmask=(),
                )
            finally:
                os.close(quiet)
        except OSError as error:
            for end in (*ours, self._lock):
                os.close(end)
            shutil.rmtree(self._folder, ignore_errors=True)
            raise NoBrowserError(f"{program}: {error.strerror}; hint: TANDEM_CHROMIUM names another") from error
        finally:
            for end in theirs:
                os.close(end)
        self._ends = ours
        self.devtools = DevTools(ours[1], ours[0], stop, longest)

    def page(self, until_s: float) -> str:
        """Attach to the empty page; its session. NoBrowserError when the browser does not come up."""
        try:
            found = self.devtools.call("Target.getTargets", until_s=until_s).get("targetInfos", [])
            pages = [t.get("targetId") for t in found if isinstance(t, dict) and t.get("type") == "page"]
            if not pages:
                made = self.devtools.call("Target.createTarget", {"url": "about:blank"}, until_s=until_s)
                pages = [made["targetId"]]
            attach = {"targetId": pages[0], "flatten": True}
            return str(self.devtools.call("Target.attachToTarget", attach, until_s=until_s)["sessionId"])
        except KeyError as error:
            raise NoBrowserError(f"Chromium: an answer without {error}") from error
        except DevToolsError as error:
            raise NoBrowserError(f"Chromium did not start: {self.said() or error}") from error

    def said(self) -> str:
        """What it said last on stderr that tells anything, in one line."""
        try:
            lines = self._errors.read_text("utf-8", "replace").splitlines()
        except OSError:
            return ""
        first = [line for line in lines if "FATAL" in line or "sandbox!" in line]
        telling = first + [line for line in lines if "ERROR" in line and "dbus" not in line]
        text = " ".join((telling[0] if telling else "").split())[:200]
        return text + ("; hint: install chromium-sandbox, or sandbox = false" if "sandbox!" in text else "")

    def close(self) -> None:
        """End it and all that it started, at once; the profile goes. Never raises for a browser that has gone already."""
        for end in (*self._ends, *(() if self._lock < 0 else (self._lock,))):
            os.close(end)
        self._ends, self._lock = [], -1
        end_family(self.pid, str(self._folder))
        shutil.rmtree(self._folder, ignore_errors=True)


def _sweep() -> None:
    """Remove the profiles of processes that were killed: nobody holds their lock."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):  # another user's, or gone meanwhile
            lock = os.open(folder / _LOCK, os.O_WRONLY | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if time.time() - folder.stat().st_ctime > _YOUNG_S:  # else its owner may be about to take it
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)


def _high(descriptor: int) -> int:
    copy = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(descriptor)
    return copy


def _environment(folder: Path) -> Mapping[str, str]:
    """Ours, with a home that goes with the profile, and no display or bus to look for."""
    kept = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS")}
    home = {name: str(folder) for name in ("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "TMPDIR")}
    return {**kept, **home}
