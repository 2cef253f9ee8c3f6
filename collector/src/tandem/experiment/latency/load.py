"""A download beside the probes, to load the path: its bytes are counted, never looked at."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

from tandem.experiment import http_head
from tandem.experiment.common_parameters import CommonParameters, ProbePath
from tandem.experiment.control import Session, describe
from tandem.experiment.measured_connection import connect
from tandem.stream import Stream


@dataclass(slots=True)
class Load:
    """``with Load(…) as load``: a TCP download over ``path`` until the end of the block. ``error``: why it ended before, or never began."""

    asked: CommonParameters
    path: ProbePath
    session: Session
    seconds: float
    timeout_s: float
    received: int = 0
    error: str | None = None
    began_ns: int | None = None
    ended_ns: int | None = None
    _first: threading.Event = field(default_factory=threading.Event)
    _over: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Load:
        """Returns when the first payload is here, or it has failed."""
        self._thread = threading.Thread(target=self._run, name="load", daemon=True)
        self._thread.start()
        self._first.wait(2 * self.timeout_s)
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        assert self._thread is not None  # noqa: S101  (entered)
        self._thread.join(2 * self.timeout_s)

    @property
    def goodput_bit_per_s(self) -> float | None:
        """From the first payload to the end; None without any."""
        if self.began_ns is None or self.ended_ns is None or self.ended_ns <= self.began_ns:
            return None
        return self.received * 8e9 / (self.ended_ns - self.began_ns)

    def _run(self) -> None:
        try:
            made = connect(self.asked, "tcp", self.path, self.timeout_s)
            with made.socket:
                self._read(made.stream)
        except http_head.HeadError as error:
            self.error = str(error)
        except OSError as error:
            self.error = describe(error)
        finally:
            self.ended_ns = time.monotonic_ns()
            self._first.set()

    def _read(self, made: Stream) -> None:
        made.settimeout(self.timeout_s)
        asked = f"/v1/download?seconds={self.seconds:g}"
        headers = {"X-Tandem-Session": self.session.claim(asked)}
        made.sendall(http_head.request(asked, self.asked.measurement.authority, headers))
        start, head = b"", None
        while head is None:
            more = made.recv(65536)
            if not more:
                self.error = "closed before any answer"
                return
            start += more
            head = http_head.parse(start)
        if head.status != 200:
            self.error = f"HTTP {head.status}"
            return
        self.received = len(start) - head.size
        self.began_ns = time.monotonic_ns()
        self._first.set()
        buffer = bytearray(1 << 20)
        while not self._over.is_set():
            count = made.recv_into(buffer)
            if count == 0:
                return
            self.received += count
