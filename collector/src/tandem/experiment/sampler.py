"""Samples of the measured connection from a second thread, on a schedule of its own; which path a subflow runs over."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tandem.experiment.base import Output
from tandem.experiment.common_parameters import ProbePath
from tandem.mptcp import sockets
from tandem.mptcp.series import PathName, Row, Series
from tandem.mptcp.statistics import Reader, StatisticsError, SubflowSample


class PathNames:
    """The names of ``paths``, which may be given without their addresses."""

    def __init__(self, paths: Sequence[ProbePath]) -> None:
        self._paths = paths
        self._by_address: dict[str, PathName] = {}
        for path in self._paths:
            if path.address is not None:
                self._by_address[path.address] = PathName(path.name, path.operator)

    def of(self, subflow: SubflowSample) -> PathName:
        """The path, or nothing known."""
        host = subflow.local.host if subflow.local is not None else None
        if host is None:
            return PathName(None, None)
        if host not in self._by_address:
            # not told, or changed since: a mobile network may give another address at any time
            for path in self._paths:
                for current in sockets.interface_addresses(path.interface):
                    self._by_address[current] = PathName(path.name, path.operator)
        return self._by_address.get(host, PathName(None, None))


JOIN_RESOLUTION_S = 0.005
_JOIN_WATCH_S = 2.0
EMPTY: Mapping[str, Any] = {}


class Sampler:
    """Reads ``connection`` ``hertz`` times a second and writes a ``sample`` line each time.

    In the first two seconds, until ``expected`` subflows are established, it looks every 5 ms, only for joins. ``payload``: how many
    bytes of it passed so far. ``labels``: what else each line's ``connection`` says, where several are measured.
    """

    def __init__(
        self,
        connection: socket.socket,
        series: Series,
        payload: Callable[[], int],
        output: Output,
        hertz: float,
        expected: int,
        labels: Mapping[str, Any] = EMPTY,
    ) -> None:
        self._reader = Reader(connection)
        self._series, self._payload, self._output = series, payload, output
        self._labels = labels
        self._period_s = 1 / hertz
        self._expected = expected
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sampler")
        self.made = 0
        self.failed = 0
        self.late_ms_max = 0.0

    def start(self) -> None:
        """Begin with a sample at once."""
        self._thread.start()

    def stop(self) -> None:
        """End with a last sample. The connection must still be open."""
        self._done.set()
        self._thread.join()
        self._sample()

    def _run(self) -> None:
        begun = due = time.monotonic()
        self._sample()
        while True:
            due += self._period_s
            while (
                not self._joined()
                and time.monotonic() - begun < _JOIN_WATCH_S
                and due - time.monotonic() > JOIN_RESOLUTION_S
            ):
                if self._done.wait(JOIN_RESOLUTION_S):
                    return
                self._note()
            if self._done.wait(max(0.0, due - time.monotonic())):
                return
            late = time.monotonic() - due
            self.late_ms_max = max(self.late_ms_max, late * 1000)
            self._sample()
            if late > self._period_s:
                due = time.monotonic()  # a sleep of the machine is not made up by a burst of samples

    def _joined(self) -> bool:
        return sum(t.established_ns is not None for t in self._series.totals.values()) >= self._expected

    def _note(self) -> None:
        try:
            self._series.note(self._reader.read())
        except StatisticsError:
            self.failed += 1

    def _sample(self) -> None:
        try:
            sample = self._reader.read()
        except StatisticsError:
            self.failed += (
                1  # after a reset the kernel has forgotten the connection; the totals keep what was last seen
            )
            return
        self.made += 1
        self._output.line("sample", **as_json(self._series.add(sample, self._payload()), self._labels))


def as_json(row: Row, labels: Mapping[str, Any] = EMPTY) -> dict[str, Any]:
    """A row as the content of a ``sample`` line; ``labels``: which connection it is."""
    subflows = [
        {"subflow": s.subflow, "path": s.name.path, "operator": s.name.operator, **s.fields} for s in row.subflows
    ]
    return {"monotonic_ns": row.monotonic_ns, "connection": {**labels, **row.connection}, "subflows": subflows}
