"""One capture of headers: tcpdump writes to a pipe, we write to disk, under a budget that all captures share."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import IO

from tandem.capture import stay_root
from tandem.capture.pcap import HEADER_BYTES, PcapError, Walker


class Budget:
    """``limit_bytes`` for all captures together, of which ``used_bytes`` lie on disk already. For any number of threads."""

    def __init__(self, limit_bytes: int, used_bytes: int = 0) -> None:
        self.limit_bytes = limit_bytes
        self._used = used_bytes
        self._lock = threading.Lock()

    @property
    def used_bytes(self) -> int:
        """What is taken; may exceed the limit when there was more on disk from the start."""
        return self._used

    @property
    def left_bytes(self) -> int:
        return max(0, self.limit_bytes - self._used)

    def take(self, count: int) -> bool:
        """Take ``count`` bytes, or nothing and False when they are not left."""
        with self._lock:
            if self._used + count > self.limit_bytes:
                return False
            self._used += count
            return True

    def give_back(self, count: int) -> None:
        """Return bytes of a capture that is no longer on this disk."""
        with self._lock:
            self._used = max(0, self._used - count)


# ---------------------------------------------------------------------------------------------------------------------
# A capture on disk: whole packets only, under a budget, ``.tmp`` until it is synced and whole.


class CaptureFile:
    """Writes a pcap stream to ``path``. ``reason``: why it was cut, None while everything was written."""

    def __init__(self, path: Path, budget: Budget) -> None:
        self.path = path
        self._budget = budget
        self._temporary = path.with_name(path.name + ".tmp")
        path.parent.mkdir(parents=True, exist_ok=True)
        self._fd = os.open(self._temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o640)
        self._walker = Walker()
        self._sha256 = hashlib.sha256()
        self.bytes = 0
        self.packets = 0
        self.reason: str | None = None

    def write(self, piece: bytes) -> bool:
        """Take a piece of the stream; False once the capture is cut, after which nothing is taken any more."""
        if self.reason is not None:
            return False
        try:
            whole, sizes = self._walker.feed(piece)
        except PcapError as error:
            self.reason = f"damaged stream: {error}"
            return False
        if self._walker.damage is not None:
            self.reason = f"damaged stream: {self._walker.damage}"
        if not self._budget.take(len(whole)):
            whole, sizes = self._as_much_as_fits(whole, sizes)
            self.reason = f"capture budget of {self._budget.limit_bytes} bytes used up"
        if whole:
            self._put(whole, sizes)
        return self.reason is None

    def _as_much_as_fits(self, whole: bytes, sizes: list[int]) -> tuple[bytes, list[int]]:
        """The longest row of whole units that the budget still has room for, taken from it."""
        ends = list(accumulate(sizes))
        while ends and not self._budget.take(ends[-1]):
            left = self._budget.left_bytes
            while ends and ends[-1] > left:
                ends.pop()
        return (whole[: ends[-1]], sizes[: len(ends)]) if ends else (b"", [])

    def _put(self, whole: bytes, sizes: list[int]) -> None:
        done = 0
        try:
            while done < len(whole):
                done += os.write(self._fd, memoryview(whole)[done:])
        except OSError as error:
            # Disk full (or quota, or I/O error): back to the last whole unit.
            self.reason = f"disk: {os.strerror(error.errno or 0).lower()}"
            ends = [end for end in accumulate(sizes) if end <= done]
            kept = ends[-1] if ends else 0
            self._budget.give_back(len(whole) - kept)
            os.ftruncate(self._fd, self.bytes + kept)
            os.lseek(self._fd, self.bytes + kept, os.SEEK_SET)
            whole, sizes = whole[:kept], sizes[: len(ends)]
        header = self.bytes == 0 and sizes[:1] == [HEADER_BYTES]
        self._sha256.update(whole)
        self.bytes += len(whole)
        self.packets += len(sizes) - header

    def close(self) -> str:
        """Sync, rename to the final name, sync the folder; the sha256 in hex."""
        try:
            try:
                os.fsync(self._fd)
            finally:
                os.close(self._fd)
        except OSError as error:
            self.reason = self.reason or f"disk: {os.strerror(error.errno or 0).lower()}"
        self._temporary.replace(self.path)
        folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        return self._sha256.hexdigest()

    def discard(self) -> None:
        """Nothing came: leave no file behind."""
        os.close(self._fd)
        self._temporary.unlink(missing_ok=True)
        self._budget.give_back(self.bytes)


# ---------------------------------------------------------------------------------------------------------------------
# Capture one interface: tcpdump to a pipe, a thread from the pipe to disk. tcpdump writes to its standard output,
# since its AppArmor profile forbids most folders and its rotation has no budget. Started as root it is told to stay
# root (``-Z root``): its own user could not be ended by a collector that gave up CAP_KILL.


_CAP_SETGID = 1 << 6
_PIPE_BYTES = 1 << 20
_PAUSE_S = 0.05
_KERNEL_BUFFER_KIB = 8192
FLUSH_S = 1.2
"""The kernel hands packets to tcpdump in blocks, at the latest after libpcap's timeout of one second, and a block that is open
when tcpdump is ended is lost: measured here, 1000 of 1000 packets. So the end waits a little longer than that."""
_COUNTS = re.compile(r"^(\d+) packets? (captured|received by filter|dropped by kernel)", re.MULTILINE)
_LISTENING = "listening on"


class CaptureError(RuntimeError):
    """The capture cannot begin; one line with tcpdump's own words."""


@dataclass(frozen=True, slots=True)
class CaptureResult:
    """A finished capture. ``file``: where it lies, synced; ``cut``: it ends before it was told to, ``reason`` says why.

    ``dropped_packets``: the kernel had no room for them. ``missed_packets``: they still were in the kernel's buffer at the end
    (on the loopback interface also the half that tcpdump leaves out as doubles). Both None when tcpdump did not say.
    """

    file: Path
    bytes: int
    packets: int
    cut: bool
    sha256: str
    reason: str | None = None
    dropped_packets: int | None = None
    missed_packets: int | None = None


class Capture:
    """One interface into one file. ``filter``: a pcap filter, "" for everything. ``start`` once, then ``stop`` once."""

    def __init__(
        self,
        interface: str,
        path: Path,
        snaplen_bytes: int,
        budget: Budget,
        filter: str = "",  # noqa: A002  pcap's own word
    ) -> None:
        self._interface, self._path, self._snaplen, self._budget = interface, Path(path), snaplen_bytes, budget
        self._filter = filter
        self._process: subprocess.Popen[bytes] | None = None
        self._file: CaptureFile | None = None
        self._threads: list[threading.Thread] = []
        self._stopping = threading.Event()
        self._heard = threading.Condition()
        self._messages: list[str] = []
        self._words_ended = False

    def start(self, timeout_s: float = 10.0) -> None:
        """Return when tcpdump listens: packets from now on are captured. CaptureError when it cannot."""
        command = self._command()
        try:
            self._file = CaptureFile(self._path, self._budget)
        except OSError as error:
            raise CaptureError(f"{self._path}: {os.strerror(error.errno or 0)}") from error
        # A session of its own: Ctrl-C in a terminal must not end the capture before the collector says so.
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"},
            start_new_session=True,
        )
        stream, words = self._process.stdout, self._process.stderr
        if stream is None or words is None:
            raise RuntimeError("Popen made no pipes")
        with contextlib.suppress(OSError):  # above the user's limit of pipe memory the default of 64 KiB must do
            fcntl.fcntl(stream.fileno(), fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        self._threads = [
            threading.Thread(
                target=self._copy, args=(stream, self._file), name=f"capture {self._interface}", daemon=True
            ),
            threading.Thread(target=self._listen, args=(words,), name=f"tcpdump {self._interface}", daemon=True),
        ]
        for thread in self._threads:
            thread.start()
        with self._heard:
            self._heard.wait_for(lambda: self._words_ended or self._listening(), timeout_s)
            listening = self._listening()
        if not listening:
            self._end(0.0)
            self._file.discard()
            said = "; ".join(self._messages) or f"did not begin within {timeout_s:g} s"
            raise CaptureError(f"tcpdump on {self._interface}: {said}")

    def stop(self, flush_s: float = FLUSH_S) -> CaptureResult:
        """End the capture; returns when the file lies synced under its final name, after ``flush_s`` seconds and a little.

        For several captures at once see ``stop_all``, which waits once.
        """
        if self._process is None or self._file is None:
            raise RuntimeError("stop() without start()")
        ended_by_itself = self._process.poll() is not None
        self._end(flush_s)
        digest = self._file.close()
        reason = self._file.reason
        if reason is None and ended_by_itself:
            reason = "tcpdump ended: " + (
                self._messages[-1] if self._messages else f"status {self._process.returncode}"
            )
        counts = {key: int(count) for count, key in _COUNTS.findall("\n".join(self._messages))}
        dropped = counts.get("dropped by kernel")
        missed = None
        if dropped is not None and "captured" in counts and "received by filter" in counts:
            # the kernel's "received" includes what it dropped
            missed = max(0, counts["received by filter"] - dropped - counts["captured"])
        return CaptureResult(
            file=self._path,
            bytes=self._file.bytes,
            packets=self._file.packets,
            cut=reason is not None,
            sha256=digest,
            reason=reason,
            dropped_packets=dropped,
            missed_packets=missed,
        )

    def _command(self) -> list[str]:
        program = shutil.which("tcpdump", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")
        if program is None:
            raise CaptureError("the program tcpdump is missing; hint: install the package tcpdump")
        start, stay = [program], list[str]()
        if os.geteuid() == 0:
            stay = ["-Z", "root"]
            if not _may_set_groups():
                start = [sys.executable, "-I", "-S", stay_root.__file__, program]
        sizes = ["-s", str(self._snaplen), "-B", str(_KERNEL_BUFFER_KIB)]
        # Not promiscuous (-p): in a Wi-Fi network others' packets are none of ours.
        return [*start, *stay, "-i", self._interface, "-p", "-n", *sizes, "-w", "-", *self._filter.split()]

    def _listening(self) -> bool:
        return any(_LISTENING in message for message in self._messages)

    def _listen(self, words: IO[bytes]) -> None:
        with words:
            for line in words:
                with self._heard:
                    self._messages.append(line.decode("ascii", "replace").strip().removeprefix("tcpdump: "))
                    self._heard.notify_all()
        with self._heard:
            self._words_ended = True
            self._heard.notify_all()

    def _copy(self, stream: IO[bytes], file: CaptureFile) -> None:
        """From the pipe to disk until tcpdump closes it; after a cut tcpdump is ended and what it still says is dropped."""
        with stream:
            while piece := os.read(stream.fileno(), _PIPE_BYTES):
                if file.reason is None and not file.write(piece):
                    self._signal(signal.SIGTERM)
                self._stopping.wait(
                    _PAUSE_S
                )  # many packets at once cost less than each alone; the pipe holds more than that

    def _end(self, flush_s: float) -> None:
        process = self._process
        if process is None:
            return
        if flush_s and self._file is not None and self._file.reason is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(flush_s)
        self._stopping.set()
        self._signal(signal.SIGTERM)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGKILL)
            process.wait()
        for thread in self._threads:
            thread.join()

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)


def _may_set_groups() -> bool:
    for line in Path("/proc/thread-self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) & _CAP_SETGID)
    return True


def stop_all(captures: Sequence[Capture]) -> list[CaptureResult]:
    """End several captures, waiting for the kernel's blocks only once; results in their order."""
    end = time.monotonic() + FLUSH_S
    return [capture.stop(max(0.0, end - time.monotonic())) for capture in captures]
