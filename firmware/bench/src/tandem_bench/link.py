"""The emulated radio link, seen from Python: what it is to offer, and one running ``tandem-link``."""

from __future__ import annotations

import contextlib
import selectors
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from tandem_bench import BenchError
from tandem_bench.requirements import find_link

Scope = Literal["down", "up", "both"]
Quantity = Literal["rate", "delay_us", "buffer_bytes", "loss", "outage", "queue"]


class LinkError(BenchError):
    """The link did not start, does not answer, or refused; the message is one line."""


@dataclass(frozen=True, slots=True)
class Constant:
    """A link that stays as it is until it is told otherwise. Capacities in bit/s, buffers in bytes, loss 0 to 1."""

    down_bit_per_s: float
    up_bit_per_s: float
    rtt_ms: float = 40.0
    buffer_down_bytes: int = 1_000_000
    buffer_up_bytes: int = 500_000
    loss_down: float = 0.0
    loss_up: float = 0.0

    def arguments(self) -> list[str]:
        """As options of tandem-link."""
        return [
            f"--down-bit-per-s={self.down_bit_per_s}",
            f"--up-bit-per-s={self.up_bit_per_s}",
            f"--rtt-ms={self.rtt_ms}",
            f"--buffer-down-bytes={self.buffer_down_bytes}",
            f"--buffer-up-bytes={self.buffer_up_bytes}",
            f"--loss-down={self.loss_down}",
            f"--loss-up={self.loss_up}",
        ]


@dataclass(frozen=True, slots=True)
class Played:
    """A link that plays a timeline file. ``epoch_ns``: CLOCK_MONOTONIC at the timeline's t_s = 0; None: when it starts.

    ``down_trace``, ``up_trace``: packet-delivery traces (mahimahi) in place of that direction's rate. ``down_light_trace``,
    ``up_light_trace``: those of the link while it is hardly used, beside them, and ``light_rtt_ms`` its propagation.
    """

    timeline: Path
    epoch_ns: int | None = None
    down_trace: Path | None = None
    up_trace: Path | None = None
    down_light_trace: Path | None = None
    up_light_trace: Path | None = None
    light_rtt_ms: float | None = None

    def arguments(self) -> list[str]:
        """As options of tandem-link."""
        epoch = [] if self.epoch_ns is None else [f"--epoch-ns={self.epoch_ns}"]
        files = {"down": self.down_trace, "up": self.up_trace}
        files |= {"down-light": self.down_light_trace, "up-light": self.up_light_trace}
        traces = [f"--{which}-trace={path}" for which, path in files.items() if path]
        light = [] if self.light_rtt_ms is None else [f"--light-rtt-ms={self.light_rtt_ms}"]
        return [f"--timeline={self.timeline}", *epoch, *traces, *light]


@dataclass(frozen=True, slots=True)
class LinkSpec:
    """What to start: both ends (namespace file and interface name), what is offered, where the log goes."""

    a_netns: str
    a_name: str
    b_netns: str
    b_name: str
    offer: Constant | Played
    log: Path | None = None
    operator: str | None = None
    seed: int = 1
    mtu: int = 1500
    more: Sequence[str] = field(default=())

    def arguments(self) -> list[str]:
        """The options of tandem-link, without the program's name."""
        options = [
            f"--a-netns={self.a_netns}",
            f"--a-name={self.a_name}",
            f"--b-netns={self.b_netns}",
            f"--b-name={self.b_name}",
            f"--mtu={self.mtu}",
            f"--seed={self.seed}",
            *self.offer.arguments(),
        ]
        if self.log is not None:
            options.append(f"--log={self.log}")
        if self.operator is not None:
            options.append(f"--operator={self.operator}")
        return [*options, *self.more]


class LinkProcess:
    """A link that runs from ``start`` to ``stop``; as a context manager it does both."""

    def __init__(self, spec: LinkSpec, wait_s: float = 10.0) -> None:
        """``wait_s``: how long the program may take to answer, seconds."""
        self.spec = spec
        self._wait_s = wait_s
        self._process: subprocess.Popen[bytes] | None = None
        self._unread = b""

    @property
    def pid(self) -> int:
        """Process id; LinkError when it does not run."""
        return self._running().pid

    def start(self) -> Self:
        """Start it and wait until both devices are up. LinkError with the program's own line when it ends instead."""
        self._process = subprocess.Popen(
            [str(find_link()), *self.spec.arguments()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        try:
            self._expect("ready")
        except BaseException:
            self.stop()
            raise
        return self

    def set(self, scope: Scope, quantity: Quantity, value: float | str) -> None:
        """Let ``quantity`` be ``value`` until it is cleared, whatever the timeline says."""
        self._tell(f"set {scope} {quantity} {value}")

    def clear(self, scope: Scope, quantity: Quantity) -> None:
        """Let the timeline speak again."""
        self._tell(f"clear {scope} {quantity}")

    def poll(self) -> int | None:
        """Exit status when it has ended by itself, else None."""
        return self._running().poll()

    def stop(self) -> int | None:
        """End it and its devices; its exit status, None when it was never started. Safe to call twice."""
        process, self._process = self._process, None
        if process is None:
            return None
        process.terminate()
        try:
            process.wait(self._wait_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):  # a command that was still to be sent to a link that is gone
                    pipe.close()
        return process.returncode

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise LinkError("the link does not run")
        return self._process

    def _tell(self, line: str) -> None:
        process = self._running()
        assert process.stdin is not None  # noqa: S101 - it was opened as a pipe in start
        try:
            process.stdin.write(line.encode() + b"\n")
            process.stdin.flush()
        except BrokenPipeError:
            raise LinkError(f"tandem-link has ended: {self._last_words(process)}") from None
        self._expect("ok")

    def _expect(self, answer: str) -> None:
        line = self._line()
        if line != answer:
            raise LinkError(f"tandem-link: {line.removeprefix('error: ')}")

    def _line(self) -> str:
        process = self._running()
        assert process.stdout is not None  # noqa: S101 - it was opened as a pipe in start
        until = time.monotonic() + self._wait_s
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._unread:
                if not selector.select(max(0.0, until - time.monotonic())):
                    raise LinkError(f"tandem-link does not answer within {self._wait_s:g} s")
                chunk = process.stdout.read1(4096)  # type: ignore[attr-defined]  # typeshed: IO[bytes]; it is a BufferedReader
                if not chunk:
                    raise LinkError(f"tandem-link has ended: {self._last_words(process)}")
                self._unread += chunk
        line, _, self._unread = self._unread.partition(b"\n")
        return line.decode(errors="replace")

    def _last_words(self, process: subprocess.Popen[bytes]) -> str:
        assert process.stderr is not None  # noqa: S101 - it was opened as a pipe in start
        process.wait(self._wait_s)
        words = process.stderr.read().decode(errors="replace").strip().splitlines()
        return words[-1].removeprefix("tandem-link: ") if words else f"exit status {process.returncode}"
