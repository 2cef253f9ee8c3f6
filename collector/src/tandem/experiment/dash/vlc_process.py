"""VLC without a window, as a process of ours: started with its logic pinned, its log stamped line by line, ended whatever happens."""

from __future__ import annotations

import contextlib
import os
import queue
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from tandem.experiment.base import EnvironmentLackError
from tandem.experiment.dash.vlc_log import Event, read

_NOBODY = 65534
_CAP_SETUID = 1 << 7
_LINE_BYTES = 65536
_TERM_S = 3.0
_VERSION_S = 30.0
"""On a Pi the first start reads every plugin."""
_QUIET = ("--no-lua", "--no-metadata-network-access", "--no-media-library", "--no-osd", "--no-spu", "--no-audio")


def command() -> list[str]:
    """How VLC is started here, ``$TANDEM_VLC`` before the one that is installed; EnvironmentLackError without one."""
    program, setpriv = os.environ.get("TANDEM_VLC") or shutil.which("vlc"), shutil.which("setpriv")
    if program is None or not os.access(program, os.X_OK):
        raise EnvironmentLackError("no VLC here; mend: apt-get install vlc-bin vlc-plugin-base, or player = own")
    if setpriv is None:
        raise EnvironmentLackError("no setpriv here; mend: apt-get install util-linux")
    # It must not outlive us, has no use for the collector's capabilities, and refuses to run as root.
    rights = ["--pdeathsig", "KILL", "--inh-caps=-all", "--ambient-caps=-all", "--no-new-privs"]
    if os.geteuid() == 0:
        if not _may_become_another():
            raise EnvironmentLackError(
                "VLC refuses to run as root, and this process may not become another user; "
                "mend: start the collector as a user of its own, or player = own"
            )
        user = _user(program)
        rights += [f"--reuid={user}", f"--regid={user}", "--clear-groups", "--bounding-set=-all"]
    return [setpriv, *rights, "--", program]


def there() -> bool:
    """Whether a VLC can be started here."""
    try:
        command()
    except EnvironmentLackError:
        return False
    return True


def trouble() -> str | None:
    """Why the VLC that is installed does not start as the experiment starts it; None where it does. EnvironmentLackError without one."""
    start = command()
    with tempfile.TemporaryDirectory(prefix="tandem-vlc-") as home:
        environment = {"HOME": home, "LANG": "C", "PATH": os.environ.get("PATH", os.defpath)}
        try:
            done = subprocess.run(
                [*start, "--version"], capture_output=True, text=True, timeout=_VERSION_S, check=False, env=environment
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
    if done.returncode != 0 or not done.stdout.strip():
        return " ".join((done.stderr.strip().splitlines() or [f"it ended with status {done.returncode}"])[-1].split())
    return None


def _may_become_another() -> bool:
    """Whether this thread has CAP_SETUID; root on the bench keeps the unit's capabilities alone (collector/system/tandem.service)."""
    for line in Path("/proc/thread-self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) & _CAP_SETUID)
    return True


def _user(program: str) -> int:
    """Who VLC is when we are root: whoever owns the program, who can read it; nobody where that is root."""
    return Path(program).stat().st_uid or _NOBODY


def arguments(url: str, logic: str, caching_s: float, buffer_s: float, seconds: float | None) -> list[str]:
    """VLC's own: play ``url`` once, without showing it. ``caching_s``: video that it wants before the picture (goes on)."""
    return [
        "-I", "dummy", "--vout", "dummy", "--aout", "dummy", "-vv", "--no-color", *_QUIET, "--avcodec-hw", "none", "--play-and-exit",
        "--adaptive-logic", logic, "--adaptive-maxbuffer", f"{buffer_s * 1000:.0f}", "--network-caching", f"{caching_s * 1000:.0f}",
        *([] if seconds is None else ["--stop-time", f"{seconds:g}"]), url, "vlc://quit",
    ]  # fmt: skip


class Vlc:
    """One VLC, started by ``start`` (``command`` and ``arguments``). ``home``: a folder of its own, which it can write to."""

    def __init__(self, start: Sequence[str], home: str) -> None:
        if os.geteuid() == 0:
            user = _user(start[list(start).index("--") + 1])
            os.chown(home, user, user)
        environment = {"HOME": home, "XDG_RUNTIME_DIR": home, "LANG": "C", "PATH": os.environ.get("PATH", os.defpath)}
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
            raise EnvironmentLackError(f"VLC cannot be started: {error.strerror}") from error
        self._thread = threading.Thread(target=self._listen, args=(self._process.stderr,), name="vlc", daemon=True)
        self._thread.start()

    @property
    def status(self) -> int | None:
        """Its exit status; None while it runs."""
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
