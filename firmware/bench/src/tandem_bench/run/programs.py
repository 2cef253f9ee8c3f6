"""The programs of a rehearsal: started in order, awaited by their ``ready`` line, ended in reverse, their use of CPU counted.

What each may do: the collector NET_ADMIN and NET_RAW, the endpoint NET_RAW, everything else nothing. The rehearsal itself is root, since
namespaces need it. Its programs are not: they run as the user who called sudo, or, where root called, as root stripped of every
capability (a checkout below /root cannot be read by anybody else).
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from tandem_bench import BenchError

COLLECTOR = ("net_admin", "net_raw")
_ENDPOINT = ("net_raw",)
_AS_ROOT = ("setgid", "setuid")
READY_S = 60.0
"""How long a program may take to begin: seconds of an idle machine, and patience for a busy one."""


class ProgramError(BenchError):
    """A program did not start or ended too early; the message says which, how, and where its log is."""


@dataclass(frozen=True)
class Owner:
    """The user to whom the results belong and as whom the programs run."""

    uid: int
    gid: int

    @classmethod
    def of_caller(cls) -> Owner:
        """Who called: sudo's caller, else the user of this process."""
        return cls(int(os.environ.get("SUDO_UID", os.getuid())), int(os.environ.get("SUDO_GID", os.getgid())))

    @property
    def endpoint(self) -> tuple[str, ...]:
        """What the endpoint's captures take; as root tcpdump sets its user and groups anew, also to stay what it is."""
        return _ENDPOINT + (_AS_ROOT if self.uid == 0 else ())

    def give(self, path: Path) -> None:
        """Make the owner own ``path`` (file or folder, not what is in it)."""
        os.chown(path, self.uid, self.gid)


def confined(argv: Sequence[str], owner: Owner, capabilities: Sequence[str] = ()) -> list[str]:
    """``argv`` behind setpriv: as ``owner``, with ``capabilities`` (names without ``cap_``) and no way to gain more."""
    kept = ",".join(["-all", *(f"+{name}" for name in capabilities)])
    # Without the secure bits, a program that root starts would get every capability of the bounding set at exec.
    rights = f"--reuid={owner.uid} --regid={owner.gid} --clear-groups --no-new-privs --securebits=+noroot,+noroot_locked".split()
    rights += ["--inh-caps", kept, *(["--ambient-caps", kept] if capabilities else []), "--bounding-set", kept]
    return ["setpriv", *rights, "--", *argv]


@dataclass(frozen=True)
class Usage:
    """What one program used: CPU of it and the children it awaited, peak resident memory, exit status (negative: signal; None: it
    still runs)."""

    name: str
    cpu_seconds: float
    max_rss_bytes: int
    exit: int | None

    def as_json(self) -> dict[str, Any]:
        """As campaign.json holds it."""
        return asdict(self) | {"cpu_seconds": round(self.cpu_seconds, 3)}


def usage_so_far(pid: int) -> tuple[float, int]:
    """CPU seconds and peak resident bytes of a running process and all its children (those that run: peaks added), from /proc.

    ProcessLookupError when it has ended.
    """
    folder = Path(f"/proc/{pid}")
    try:
        after_name = (folder / "stat").read_text().rpartition(")")[2].split()
        status = (folder / "status").read_text()
        children = (folder / "task" / str(pid) / "children").read_text().split()
    except FileNotFoundError:
        raise ProcessLookupError(f"process {pid} has ended") from None
    ticks = sum(int(field) for field in after_name[11:15])  # utime, stime, cutime, cstime: proc(5), fields 14 to 17
    cpu_seconds = ticks / os.sysconf("SC_CLK_TCK")
    peak_bytes = int(status.partition("VmHWM:")[2].split()[0]) * 1024
    for child in children:
        with contextlib.suppress(ProcessLookupError):  # it ended while we looked; awaited, it is counted in its parent
            child_seconds, child_bytes = usage_so_far(int(child))
            cpu_seconds, peak_bytes = cpu_seconds + child_seconds, peak_bytes + child_bytes
    return cpu_seconds, peak_bytes


class Program:
    """One running program. Its standard error goes to ``logs/NAME.log``, and its standard output after ``ready`` too."""

    def __init__(self, name: str, argv: Sequence[str], log: Path, *, terminal: bool = False) -> None:
        """``terminal``: standard output is the rehearsal's own, for the live view."""
        self.name = name
        self.argv = list(argv)
        self.log = log
        self.usage: Usage | None = None
        self._pump: threading.Thread | None = None
        self._waiting: threading.Thread | None = None
        self._log_file: IO[bytes] = log.open("ab")
        # A session of its own: Ctrl-C in the terminal must reach the rehearsal only, which ends the others in order.
        self._process = subprocess.Popen(
            self.argv,
            stdin=subprocess.DEVNULL,
            stdout=None if terminal else subprocess.PIPE,
            stderr=self._log_file,
            start_new_session=True,
        )
        self.pid = self._process.pid

    def await_ready(self, timeout_s: float) -> str:
        """The program's first line of output, which must begin with ``ready``; ProgramError when it ends or is silent."""
        assert self._process.stdout is not None  # noqa: S101  # Popen was given a pipe
        deadline = time.monotonic() + timeout_s
        line = b""
        descriptor = self._process.stdout.fileno()
        while not line.endswith(b"\n"):
            remaining = deadline - time.monotonic()
            if remaining <= 0 or not select.select([descriptor], [], [], remaining)[0]:
                raise ProgramError(f"{self.name} was not ready within {timeout_s:.0f} s{self._tail()}")
            chunk = os.read(descriptor, 4096)
            if not chunk:
                self.wait(5)
                raise ProgramError(f"{self.name} ended before it was ready{self._tail()}")
            line += chunk
        text = line.decode(errors="replace").strip()
        if not text.startswith("ready"):
            raise ProgramError(f"{self.name} said {text[:120]!r} instead of ready{self._tail()}")
        self.log_output()
        return text

    def log_output(self) -> None:
        """From now on its output goes into its log."""
        self._pump = threading.Thread(target=self._log_output, name=f"output of {self.name}", daemon=True)
        self._pump.start()

    def _log_output(self) -> None:
        """Whatever it says after ``ready`` goes into its log, so that its pipe never fills."""
        assert self._process.stdout is not None  # noqa: S101  # Popen was given a pipe
        with self._process.stdout as output, self.log.open("ab") as log:
            while chunk := os.read(output.fileno(), 65536):
                with contextlib.suppress(OSError):  # a full disk: the pipe is emptied all the same
                    os.write(log.fileno(), chunk)

    def poll(self) -> Usage | None:
        """The program's usage once it has ended, else None."""
        if self.usage is None:
            pid, status, used = os.wait4(self.pid, os.WNOHANG)
            if pid:
                self._ended(status, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024)
        return self.usage

    def wait(self, timeout_s: float) -> Usage | None:
        """As ``poll``, after at most ``timeout_s`` seconds."""
        if self.usage is None:
            self._await_end(max(0.0, timeout_s))
        return self.poll()

    def _await_end(self, timeout_s: float) -> None:
        try:
            descriptor = os.pidfd_open(self.pid)
        except OSError as error:
            if error.errno != errno.ENOSYS:
                raise
        else:
            try:
                select.select([descriptor], [], [], timeout_s)
            finally:
                os.close(descriptor)
            return
        # Before Linux 5.3 somebody has to wait for it; WNOWAIT leaves it, and its usage, to ``poll``.
        if self._waiting is None:
            awaited = (os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
            self._waiting = threading.Thread(target=os.waitid, args=awaited, name=f"end of {self.name}", daemon=True)
            self._waiting.start()
        self._waiting.join(timeout_s)

    def end(self, timeout_s: float = 10.0) -> Usage:
        """SIGTERM, then after ``timeout_s`` SIGKILL; the usage."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGTERM)
            if self.wait(timeout_s) is None:
                os.kill(self.pid, signal.SIGKILL)
                self.wait(10)
        if self.usage is None:
            raise ProgramError(f"{self.name} (process {self.pid}) does not end, not even by SIGKILL")
        return self.usage

    def _ended(self, status: int, cpu_seconds: float, max_rss_bytes: int) -> None:
        code = os.waitstatus_to_exitcode(status)
        self.usage = Usage(self.name, cpu_seconds, max_rss_bytes, code)
        self._process.returncode = code  # reaped here, with its usage, not by subprocess
        self._log_file.close()
        if self._pump is not None:
            self._pump.join(5)
        elif self._process.stdout is not None:
            self._process.stdout.close()

    def _tail(self) -> str:
        lines = self.log.read_text(errors="replace").strip().splitlines() if self.log.exists() else []
        last = f": {lines[-1][:300]}" if lines else ""
        return f"{last} (log: {self.log})"

    def failed(self) -> str | None:
        """Why this program cannot go on, when it has ended although nobody ended it; else None."""
        usage = self.poll()
        return None if usage is None else f"{self.name} ended by itself with status {usage.exit}{self._tail()}"


def once(name: str, argv: Sequence[str], timeout_s: float = READY_S) -> None:
    """Run a program to its end; ProgramError with its last line when it fails."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=timeout_s, check=False)
    except subprocess.TimeoutExpired:
        raise ProgramError(f"{name} did not end within {timeout_s:g} s") from None
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["?"])[-1]
        raise ProgramError(f"{name} failed with status {done.returncode}: {last}")


class Programs:
    """All programs of one rehearsal; as a context manager it ends whatever still runs, the last started first."""

    def __init__(self, logs: Path) -> None:
        self.logs = logs
        self.started: list[Program] = []
        self.ended: list[Usage] = []

    def start(
        self,
        name: str,
        argv: Sequence[str],
        ready_s: float | None = None,
        *,
        terminal: bool = False,
        silent: bool = False,
    ) -> Program:
        """Start one; with ``ready_s`` await its ready line that long. ``terminal``: as in ``Program``. ``silent``: it says no ready line;
        its output goes into its log from the start."""
        program = Program(name, argv, self.logs / f"{name}.log", terminal=terminal)
        if silent:
            program.log_output()
        self.started.append(program)
        if ready_s is not None:
            program.await_ready(ready_s)
        return program

    def watch(self) -> str | None:
        """The first reason why the rehearsal cannot go on, or None while all run."""
        return next((why for program in self.started if (why := program.failed())), None)

    def end(self, program: Program, timeout_s: float = 10.0) -> Usage:
        """End one and keep its usage; from now on ``watch`` does not miss it."""
        if program in self.started:
            self.started.remove(program)
            self.ended.append(program.end(timeout_s))
        return program.end(0)

    def __enter__(self) -> Programs:
        return self

    def __exit__(self, *_: object) -> None:
        stubborn = []
        for program in self.started[::-1]:
            try:
                self.end(program, 5)
            except ProgramError as error:
                stubborn.append(str(error))
        if stubborn:
            raise ProgramError("; ".join(stubborn))
