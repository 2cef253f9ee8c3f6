"""The endpoint's own captures, for sessions that request one: tcpdump on the measurement port, headers only, within a disk budget.

While a session lasts its capture holds the port's whole traffic, for a connection's packets come before anybody knows whose it is. At the
session's end only its own connections' packets are kept, as a trace of its run: beside what the probe sends, by name, run and hash in the
registry. They stay in the folder of traces of this machine, also where received traces go to a bucket: a run's end waits for no network.

Files are as tcpdump writes them on ``-i any``: pcap (draft-ietf-opsawg-pcap), little-endian, µs or ns; link types LINUX_SLL (113) and
LINUX_SLL2 (276).
"""

from __future__ import annotations

import hashlib
import ipaddress
import logging
import os
import re
import select
import shutil
import signal
import sqlite3
import struct
import subprocess
import threading
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from tandem.schema.trace import server_capture
from tandem_server.http.rates import Reserve
from tandem_server.registry import Registry, TraceRow
from tandem_server.uploads.store import TraceFolder, TraceStoreDown, make_folder

HEADER_BYTES = 24
RECORD_HEADER_BYTES = 16
_MAGIC = (0xA1B2C3D4, 0xA1B23C4D)
_LONGEST = 1 << 18
_LINK_HEADERS = {113: (16, 14), 276: (20, 0)}
"""Link type → length of its header, and where in it the protocol stands."""

End = tuple[str, int]
"""Address and port; IPv4 as IPv4."""


class PcapError(ValueError):
    """Not what tcpdump writes."""


@dataclass(frozen=True, slots=True)
class Header:
    """The file's header: as it is, and its link type."""

    raw: bytes
    link_type: int


def read_header(raw: bytes) -> Header:
    """The first HEADER_BYTES of a file; PcapError."""
    if len(raw) != HEADER_BYTES:
        raise PcapError(f"a header of {len(raw)} bytes")
    magic, _, _, _, _, _, link = struct.unpack("<IHHiIII", raw)
    if magic not in _MAGIC:
        raise PcapError(f"no capture file: it begins with {magic:#x}")
    if link & 0xFFFF not in _LINK_HEADERS:
        raise PcapError(f"link type {link & 0xFFFF} is not one of {', '.join(map(str, _LINK_HEADERS))}")
    return Header(raw, link & 0xFFFF)


def record_bytes(header: bytes) -> int:
    """How many bytes follow a record's header (RECORD_HEADER_BYTES); PcapError when that cannot be."""
    _, _, kept, _ = struct.unpack("<4I", header)
    if kept > _LONGEST:
        raise PcapError(f"a record of {kept} bytes")
    return int(kept)


def records(file: IO[bytes]) -> Iterator[bytes]:
    """The whole records, each with its header, of what follows a file's header; what is cut off at the end is left out."""
    while len(header := file.read(RECORD_HEADER_BYTES)) == RECORD_HEADER_BYTES:
        body = file.read(record_bytes(header))
        if len(body) < record_bytes(header):
            return
        yield header + body


def ends_of(record: bytes, link_type: int) -> tuple[End, End] | None:
    """Sender and receiver of a record's TCP segment; None when it is none, or cut off before its ports."""
    length, place = _LINK_HEADERS[link_type]
    frame = record[RECORD_HEADER_BYTES:]
    protocol = int.from_bytes(frame[place : place + 2], "big")
    packet = frame[length:]
    if protocol == 0x0800 and len(packet) >= 20 and packet[9] == 6:
        offset, source, target = (packet[0] & 15) * 4, packet[12:16], packet[16:20]
    elif protocol == 0x86DD and len(packet) >= 40 and packet[6] == 6:
        offset, source, target = 40, packet[8:24], packet[24:40]
    else:
        return None
    ports = packet[offset : offset + 4]
    if len(ports) < 4:
        return None
    return (
        (_host(source), int.from_bytes(ports[:2], "big")),
        (_host(target), int.from_bytes(ports[2:], "big")),
    )


def belongs(record: bytes, link_type: int, peers: Collection[End], port: int) -> bool:
    """Whether a record is of a connection between one of ``peers`` and our ``port``."""
    ends = ends_of(record, link_type)
    if ends is None:
        return False
    source, target = ends
    return (source in peers and target[1] == port) or (target in peers and source[1] == port)


def _host(raw: bytes) -> str:
    address = ipaddress.ip_address(raw)
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)


_LOG = logging.getLogger("tandem.endpoint.capture")
SNAPLEN_BYTES = 160
"""Of each packet: link, IPv6 and TCP headers with all their options."""

_AT_ONCE = 8
_START_S = 5.0
_STOP_S = 5.0
_SETTLE_S = 0.2
_DRAFTS = ".captures"
"""Beside the probes' folders, whose names never begin with a dot; on the same file system, so that a draft is linked, not copied."""
_DROPPED = re.compile(r"([0-9]+) packets? dropped by kernel")


class CaptureRefused(RuntimeError):  # noqa: N818  (an answer, no accident)
    """There will be no capture, for this reason."""


class Kept:
    """``traces``: the folder of traces. ``reserve_bytes`` of its disk stay free: nothing begins that would go into them."""

    def __init__(self, registry: Registry, traces: Path, reserve_bytes: int = 0) -> None:
        self.reserve = Reserve([traces], reserve_bytes)
        self._traces, self._store, self._drafts = registry.traces, TraceFolder(traces), traces / _DRAFTS
        for leftover in self._drafts.glob("*"):
            leftover.unlink()  # of an endpoint that died

    def taken_bytes(self) -> int:
        """What is kept, of all probes; sqlite3.Error."""
        return self._traces.server_bytes()

    def draft(self, session: str) -> Path:
        """Where a capture is written before it is kept; OSError."""
        make_folder(self._drafts)
        return self._drafts / session

    def keep(self, draft: Path, probe: str, run: str, session: str, size: int, sha256: str) -> str:
        """Make ``draft``, whole, a trace of the run, and say its name. TraceStoreDown, sqlite3.Error: then nothing of it is there."""
        name = server_capture(run, session)
        stored = self._store.put(draft, probe, name, sha256, "identity")
        row = TraceRow(probe, name, run, sha256, size, time.time_ns(), stored.place, "identity", stored.stored_bytes)
        try:
            self._traces.add(row)
        except BaseException:
            (self._store.folder / stored.place).unlink(missing_ok=True)
            raise
        return name


class Captures:
    """``folder``: what runs. All together, with those that are ``kept``, hold at most ``budget_bytes``."""

    def __init__(self, folder: Path, budget_bytes: int, kept: Kept) -> None:
        self._folder, self._budget_bytes, self.kept = folder, budget_bytes, kept
        self._lock = threading.Lock()
        self._running = 0
        folder.mkdir(parents=True, exist_ok=True)
        for leftover in folder.rglob("*.raw"):
            leftover.unlink()  # of a session that an endpoint left when it died: it holds others' traffic too
        # Those of versions that kept them here.
        self._taken_bytes = sum(file.stat().st_size for file in folder.rglob("*.pcap"))
        self._kept_bytes = 0

    def begin(self, probe: str, run: str, session: str, port: int) -> Capture:
        """A capture that sees packets of ``port`` from now on; CaptureRefused. The names are those of an open session."""
        tcpdump = shutil.which("tcpdump")
        if tcpdump is None:
            raise CaptureRefused("the endpoint has no tcpdump")
        try:
            kept_bytes = self.kept.taken_bytes()
        except sqlite3.Error as error:
            raise CaptureRefused(f"the endpoint cannot capture: its registry: {error}") from error
        with self._lock:
            self._kept_bytes = kept_bytes  # anew each time: a probe may have been erased
            if self._used_bytes + HEADER_BYTES > self._budget_bytes:
                full = f"the endpoint's captures fill their {self._budget_bytes} bytes"
                raise CaptureRefused(f"{full}; hint: a larger [capture] budget_bytes in server.toml")
            if self._running >= _AT_ONCE:
                raise CaptureRefused(f"{self._running} captures run already")
            self._running += 1
        try:
            self.kept.reserve.check()
            return Capture(self, tcpdump, self._folder / f"{session}.raw", (probe, run, session), port)
        except OSError as error:
            self.ended()
            raise CaptureRefused(f"the endpoint cannot capture: {error.strerror or error}") from error
        except BaseException:
            self.ended()
            raise

    def ended(self) -> None:
        """One runs no longer."""
        with self._lock:
            self._running -= 1

    def take(self, count: int) -> bool:
        """Reserve so many bytes of disk; False when there are not so many."""
        with self._lock:
            if self._used_bytes + count > self._budget_bytes:
                return False
            self._taken_bytes += count
            return True

    def settle(self, taken_bytes: int, kept_bytes: int) -> None:
        """Of what one reserved so much is kept; the rest is free again."""
        with self._lock:
            self._taken_bytes -= taken_bytes
            self._kept_bytes += kept_bytes

    @property
    def _used_bytes(self) -> int:
        return self._taken_bytes + self._kept_bytes


class Capture:
    """One running tcpdump. CaptureRefused when it does not start."""

    def __init__(self, captures: Captures, tcpdump: str, raw: Path, of: tuple[str, str, str], port: int) -> None:
        self._captures, self._raw, self._of, self._port = captures, raw, of, port
        self._taken_bytes = 0
        self._full = False
        self._broken: str | None = None
        self._header: Header | None = None
        # As root's it would leave for a user of its own, whom an endpoint without CAP_KILL could not end.
        stay = ["-Z", "root"] if os.geteuid() == 0 else []
        command = [
            tcpdump, *stay, "-i", "any", "-n", "-U", "--immediate-mode", "-B", "4096", "-s", str(SNAPLEN_BYTES), "-w", "-",
            f"tcp port {port}",
        ]  # fmt: skip
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._said = _until_listening(self._process)
        self._writer = threading.Thread(target=self._write, name=f"capture {raw.stem}", daemon=True)
        self._writer.start()

    def finish(self, peers: Collection[End]) -> dict[str, Any]:
        """End it, keep the packets of ``peers``, and say what there is (spec: DELETE's ``capture``)."""
        time.sleep(_SETTLE_S)  # the last segments are on their way from the kernel to tcpdump
        if (status := self._process.poll()) is not None and self._broken is None:
            self._full, self._broken = True, f"tcpdump ended before its session (status {status})"
        self._process.send_signal(signal.SIGINT)
        self._writer.join(_STOP_S)
        try:
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            _LOG.warning("%s: tcpdump does not stop; killed", self._raw)
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._writer.join()
        assert self._process.stderr is not None  # noqa: S101  (started with a pipe)
        with self._process.stderr as errors:
            self._said += errors.read().decode(errors="replace")
        dropped = _DROPPED.search(self._said)
        summary: dict[str, Any] = {
            "file": None,
            "name": None,
            "bytes": None,
            "sha256": None,
            "packets": None,
            "packets_dropped": int(dropped[1]) if dropped else None,
            "truncated": self._full,
        }
        self._captures.ended()
        if self._broken is not None:
            summary["error"] = self._broken
        try:
            return summary | self._keep(peers)
        except (OSError, PcapError, TraceStoreDown, sqlite3.Error) as error:
            _LOG.warning("%s: %s", self._raw, error)
            return summary | {"error": str(error)}

    def _write(self) -> None:
        """Carry tcpdump's output to disk as long as there is room, and read on without writing when there is none."""
        output = self._process.stdout
        assert output is not None  # noqa: S101  (started with a pipe)
        try:
            with output, self._raw.open("wb") as raw:
                first = output.read(HEADER_BYTES)
                self._header = read_header(first)
                if not self._captures.take(len(first)):
                    self._full = True
                    first = b""
                self._taken_bytes += raw.write(first)
                for record in records(output):
                    if not self._full and not self._captures.take(len(record)):
                        self._full = True
                    if not self._full:
                        self._taken_bytes += len(record)
                        raw.write(record)
        except (OSError, PcapError) as error:
            _LOG.warning("%s: %s", self._raw, error)
            self._full, self._broken = True, str(error)
            self._process.kill()

    def _keep(self, peers: Collection[End]) -> dict[str, Any]:
        """The session's own packets, as a trace of its run; the rest is given back to the budget."""
        kept_bytes, draft = 0, None
        digest = hashlib.sha256()
        try:
            if self._header is None:
                raise PcapError("tcpdump wrote nothing")
            draft = self._captures.kept.draft(self._of[2])
            with self._raw.open("rb") as raw, draft.open("wb") as file:
                digest.update(self._header.raw)
                size, packets = file.write(self._header.raw), 0
                raw.seek(HEADER_BYTES)
                for record in records(raw):
                    if belongs(record, self._header.link_type, peers, self._port):
                        digest.update(record)
                        size += file.write(record)
                        packets += 1
            name = self._captures.kept.keep(draft, *self._of, size, digest.hexdigest())
            kept_bytes = size
        finally:
            if draft is not None:
                draft.unlink(missing_ok=True)
            self._raw.unlink(missing_ok=True)
            self._captures.settle(self._taken_bytes, kept_bytes)
        kept = {"file": Path(name).name, "name": name, "bytes": size, "packets": packets}
        return kept | {"sha256": digest.hexdigest()}


def peers_of(summaries: Collection[Mapping[str, Any]]) -> set[End]:
    """The far ends of a session's connections and of their subflows, from what became of them."""
    ends = [
        end for summary in summaries for end in (summary.get("peer"), *(f.get("remote") for f in summary["subflows"]))
    ]
    return {(end["address"], end["port"]) for end in ends if end is not None}


def _until_listening(process: subprocess.Popen[bytes]) -> str:
    """What tcpdump says until it captures; CaptureRefused with its reason when it does not."""
    errors = process.stderr
    assert errors is not None  # noqa: S101  (started with a pipe)
    poll = select.poll()
    poll.register(errors, select.POLLIN)
    said, deadline_s = b"", time.monotonic() + _START_S
    while b"listening on" not in said:
        more = os.read(errors.fileno(), 4096) if poll.poll(max(0.0, 1000 * (deadline_s - time.monotonic()))) else b""
        if not more:
            process.kill()
            process.communicate()
            reason = " ".join(said.decode(errors="replace").split())[-300:]
            raise CaptureRefused(f"the endpoint cannot capture: {reason or 'tcpdump does not start'}")
        said += more
    return said.decode(errors="replace")
