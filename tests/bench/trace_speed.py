"""The native pass against tshark and tcptrace: ratios on one generated capture, all in one run.

    ./kit run python tests/bench/trace_speed.py [--megabytes 300] [--runs 15] [--keep FILE]

Makes a capture of a Multipath TCP v1 download of that size at the client (three subflows, snaplen 128, one segment in 200 lost and sent
again), and lets each program read it on one core: tshark with the fields that the same metrics need, once; tcptrace with round trips and
retransmissions, thrice; the native pass with bins as often as --runs says. The least time of each counts. Wall-clock times decide; where
other work takes a part of the processor, the ratios of processor time beside them tell more. Exit 1 when it is less than 500 × tshark
or 5 × tcptrace.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "unit" / "traces_core"))

from captures import ACK, EPOCH, MS, SYN, capable, dss, first_dsn, multipath, timestamps, token

from tandem_server import tandem_trace_core as core

SEGMENT, BURST, SNAPLEN = 1400, 46, 128
AIM_TSHARK, AIM_TCPTRACE = 500, 5
CLIENT_KEY, SERVER_KEY = 0x0102030405060708, 0x1112131415161718
FIELDS = [
    "frame.number",
    "frame.time_epoch",
    "tcp.stream",
    "tcp.seq_raw",
    "tcp.ack_raw",
    "tcp.len",
    "tcp.window_size",
    "tcp.analysis.ack_rtt",
    "tcp.analysis.bytes_in_flight",
    "tcp.analysis.retransmission",
    "tcp.options.timestamp.tsval",
    "tcp.options.timestamp.tsecr",
    "mptcp.stream",
    "mptcp.dsn",
    "mptcp.ack",
    "tcp.options.mptcp.subtype",
]


class Subflow:
    """One subflow of the download, as bytes of frames."""

    def __init__(self, number: int) -> None:
        self.client = bytes([10, 0, number, 1])
        self.port = 40_000 + number
        self.sent = 1
        self.delay = (20 + 25 * number) * MS

    def frame(self, down: bool, at_ns: int, sequence: int, ack: int, flags: int, length: int, options: bytes) -> bytes:
        options += b"\x01" * (-len(options) % 4)
        ends = (bytes([192, 0, 2, 9]), self.client) if down else (self.client, bytes([192, 0, 2, 9]))
        ports = (443, self.port) if down else (self.port, 443)
        total = 40 + len(options) + length
        content = (
            b"\x00" * 12 + b"\x08\x00" + struct.pack(">BBHHHBBH", 0x45, 0, total, 1, 0, 64, 6, 0) + ends[0] + ends[1]
        )
        content += struct.pack(
            ">HHIIBBHHH", *ports, sequence % (1 << 32), ack % (1 << 32), (5 + len(options) // 4) << 4, flags, 4096, 0, 0
        )
        content = (content + options + bytes(SNAPLEN))[: min(SNAPLEN, 14 + total)]
        seconds, rest = divmod(EPOCH + at_ns, 1_000_000_000)
        return struct.pack("<IIII", seconds, rest, len(content), 14 + total) + content


def generate(path: Path, size: int) -> int:
    """How many packets."""
    to_client, to_server = first_dsn(SERVER_KEY, 1), first_dsn(CLIENT_KEY, 1)
    subflows = [Subflow(number) for number in range(3)]
    packets = 0
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, SNAPLEN, 1))
        for number, one in enumerate(subflows):
            at = number * 200 * MS
            join = multipath(1, 0, b"\x02" + token(SERVER_KEY, 1).to_bytes(4, "big") + bytes(4))
            opening = (capable(1), capable(1, SERVER_KEY), capable(1, CLIENT_KEY, SERVER_KEY))
            joining = (join, multipath(1, 0, bytes(13)), multipath(1, 0, bytes(21)))
            first, second, third = joining if number else opening
            file.write(one.frame(False, at, 0, 0, SYN, 0, timestamps(at // MS, 0) + first))
            file.write(one.frame(True, at + one.delay, 0, 1, SYN | ACK, 0, timestamps(at // MS, at // MS) + second))
            file.write(
                one.frame(
                    False, at + one.delay + 1000, 1, 1, ACK, 0, timestamps((at + one.delay) // MS, at // MS) + third
                )
            )
            packets += 3
        at, data, turn = 700 * MS, 0, 0
        while data < size:
            one = subflows[turn % 3]
            turn += 1
            mapping = dss(ack=to_server, dsn=to_client + data, ssn=one.sent, length=SEGMENT * BURST)
            missing: list[tuple[int, int]] = []
            for segment in range(BURST):
                at += 60_000
                stamps = timestamps(at // MS, (at - one.delay) // MS)
                place = one.sent + segment * SEGMENT
                if (packets + segment) % 200 == 7:
                    missing.append((place, segment))
                else:
                    file.write(one.frame(True, at, place, 1, ACK, SEGMENT, stamps + mapping))
                    packets += 1
                if segment % 2:
                    upto = missing[0][0] if missing else place + SEGMENT
                    ack = dss(ack=to_client + data + upto - one.sent)
                    file.write(one.frame(False, at + 20_000, 1, upto, ACK, 0, timestamps(at // MS, at // MS) + ack))
                    packets += 1
            for place, _ in missing:
                at += 60_000
                file.write(
                    one.frame(True, at, place, 1, ACK, SEGMENT, timestamps(at // MS, (at - one.delay) // MS) + mapping)
                )
                packets += 1
            one.sent += SEGMENT * BURST
            data += SEGMENT * BURST
    return packets


Times = tuple[float, float]
"""Of the clock, and of the processor, seconds."""


def _processor() -> float:
    uses = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(use.ru_utime + use.ru_stime for use in uses)


def least(action: Callable[[], object], runs: int) -> Times:
    """Each the least of all runs."""
    times = []
    for _ in range(runs):
        used, began = _processor(), time.perf_counter()
        action()
        times.append((time.perf_counter() - began, _processor() - used))
    return min(one[0] for one in times), min(one[1] for one in times)


def seconds(command: list[str], runs: int) -> Times:
    """Of a program, pinned to one core as this one is."""
    quiet = subprocess.DEVNULL
    return least(lambda: subprocess.run(command, stdout=quiet, stderr=quiet, check=True), runs)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=300, help="of the download")
    parser.add_argument("--runs", type=int, default=15, help="of the native pass")
    parser.add_argument("--keep", type=Path, help="where the capture stays")
    args = parser.parse_args()
    missing = [name for name in ("tshark", "tcptrace") if shutil.which(name) is None]
    if missing:
        print(f"missing: {' and '.join(missing)} (apt-get install {' '.join(missing)})", file=sys.stderr)
        return 3
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory() as folder:
        path = args.keep or Path(folder) / "download.pcap"
        packets = generate(path, args.megabytes * 1_000_000)
        print(f"{packets} packets, {path.stat().st_size / 1e6:.0f} MB, of a download of {args.megabytes} MB")
        options = [
            "-n",
            "-o",
            "tcp.desegment_tcp_streams:FALSE",
            "-d",
            "tcp.port==443,data",
            "-o",
            "mptcp.analyze_mappings:TRUE",
        ]
        wanted = [word for field in FIELDS for word in ("-e", field)]
        rest = {
            "tshark": seconds(["tshark", *options, "-r", str(path), "-T", "fields", *wanted], 1),
            "tcptrace": seconds(["tcptrace", "-lrn", str(path)], 3),
        }
        own = least(lambda: core.analyse(path), args.runs)
        rows = least(lambda: core.analyse(path, packets=True), 3)
    rate = packets / own[0] / 1e6
    print(
        f"native pass: {own[0] * 1e3:.1f} ms with bins ({rate:.1f} million packets a second), {rows[0] * 1e3:.1f} ms with packets"
    )
    for name, took in rest.items():
        ratios = (
            f"{took[0] / own[0]:.0f} times as fast by the clock, {took[1] / own[1]:.0f} times by the processor's time"
        )
        print(f"{name}: {took[0]:.2f} s; the native pass is {ratios}")
    return 0 if rest["tshark"][0] / own[0] >= AIM_TSHARK and rest["tcptrace"][0] / own[0] >= AIM_TCPTRACE else 1


if __name__ == "__main__":
    sys.exit(main())
