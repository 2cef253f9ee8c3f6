"""Chromium as a process: found, started without a display and with a fresh profile, ended with everything that it started.

Its descriptors 3 and 4 are the DevTools pipes: when this process dies, however, they close, and Chromium ends by itself.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tandem.devtools import family
from tandem.devtools.pipe import DevTools, DevToolsError

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
    """There is no Chromium here, or it cannot be started; one line with the mend."""


def find() -> str | None:
    """The program: ``TANDEM_CHROMIUM``, else the first of ``PROGRAMS`` in PATH; None when there is none. Ubuntu's is a snap, whose
    confinement keeps it from our pipes and folders: passed over."""
    told = os.environ.get("TANDEM_CHROMIUM")
    if told:
        return shutil.which(told)
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
        family.adopt()
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
            raise NoBrowserError(f"{program}: {error.strerror}; mend: TANDEM_CHROMIUM names another") from error
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
        return text + ("; mend: install chromium-sandbox, or sandbox = false" if "sandbox!" in text else "")

    def close(self) -> None:
        """End it and all that it started, at once; the profile goes. Never raises for a browser that has gone already."""
        for end in (*self._ends, *(() if self._lock < 0 else (self._lock,))):
            os.close(end)
        self._ends, self._lock = [], -1
        family.end(self.pid, str(self._folder))
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
