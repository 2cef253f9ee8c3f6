"""The native pass against tshark and tcptrace: ratios on one generated capture, all in one run.

    ./kit run python tests/bench/trace_speed.py [--megabytes 300] [--runs 40] [--keep FILE] [--json]

Makes a capture of a Multipath TCP v1 download of that size at the client (three subflows, snaplen 128, one segment in 200 lost and sent
again), and lets each program read it on one core, the same for all: tshark with the fields that the same metrics need, tcptrace with round
trips and retransmissions, the native pass with bins. They take turns, so that what else the machine does meets all of them; tshark twice,
tcptrace half as often as --runs says. The least time of each counts. The file is in the page cache for all, written by the megabyte.

The native pass is called in this process, as the server's workers call it for file after file: its time is from the path to the tables,
with opening and mapping the file, without starting Python. The others' times hold their start (a few milliseconds for tcptrace, about a
quarter of a second of processor time for tshark). The pass is also timed with the start of a Python that loads nothing but the library,
and this is printed beside.

Where other work takes a part of the processor, the clock tells less than the processor's own time: both ratios are printed, and the exit
is 1 when either is less than 500 × tshark or 5 × tcptrace.
"""

from __future__ import annotations

import json
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

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the tests' support

import benching
from benching import say

from support import captures
from support.capture_scenes import CLIENT_KEY, SERVER_KEY
from support.captures import ACK, MS, SERVER, SYN, capable, dss, multipath, timestamps
from tandem_server import tandem_trace_core as core

SEGMENT, BURST, SNAPLEN = 1400, 46, 128
AIMS = {"tshark": 500, "tcptrace": 5}
FIELDS = """frame.number frame.time_epoch tcp.stream tcp.seq_raw tcp.ack_raw tcp.len tcp.window_size tcp.analysis.ack_rtt
    tcp.analysis.bytes_in_flight tcp.analysis.retransmission tcp.options.timestamp.tsval tcp.options.timestamp.tsecr
    mptcp.stream mptcp.dsn mptcp.ack tcp.options.mptcp.subtype"""
OPTIONS = "-n -o tcp.desegment_tcp_streams:FALSE -d tcp.port==443,data -o mptcp.analyze_mappings:TRUE"
"""As tshark has them."""
ETHERNET = bytes(12) + b"\x08\x00"


class Subflow:
    """One subflow of the download, as bytes of frames."""

    def __init__(self, number: int) -> None:
        self.client, self.port, self.sent = f"10.0.{number}.1", 40_000 + number, 1
        self.delay = (20 + 25 * number) * MS

    def frame(self, down: bool, at_ns: int, sequence: int, ack: int, flags: int, length: int, options: bytes) -> bytes:
        ends, ports = ((SERVER, self.client), (443, self.port)) if down else ((self.client, SERVER), (self.port, 443))
        segment = captures.tcp(*ports, sequence, ack, flags, bytes(min(length, SNAPLEN)), options, 4096)
        total = 40 + len(captures.padded(options)) + length
        content = (ETHERNET + captures.ipv4(*ends, segment, total=total))[:SNAPLEN]
        seconds, rest = divmod(captures.EPOCH + at_ns, 1_000_000_000)
        return struct.pack("<IIII", seconds, rest, len(content), 14 + total) + content


def generate(path: Path, size: int) -> int:
    """How many packets."""
    to_client, to_server = captures.first_dsn(SERVER_KEY, 1), captures.first_dsn(CLIENT_KEY, 1)
    subflows = [Subflow(number) for number in range(3)]
    packets = 0
    with path.open("wb", buffering=1 << 20) as file:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, SNAPLEN, 1))

        def put(one: Subflow, down: bool, at: int, *of: int, said: tuple[int, int], options: bytes = b"") -> None:
            nonlocal packets
            packets += 1
            file.write(one.frame(down, at, *of, timestamps(*(ns // MS for ns in said)) + options))

        for number, one in enumerate(subflows):
            at = number * 200 * MS
            back = at + one.delay
            join = multipath(1, 0, b"\x02" + captures.token(SERVER_KEY, 1).to_bytes(4, "big") + bytes(4))
            opening = (capable(1), capable(1, SERVER_KEY), capable(1, CLIENT_KEY, SERVER_KEY))
            joining = (join, multipath(1, 0, bytes(13)), multipath(1, 0, bytes(21)))
            first, second, third = joining if number else opening
            put(one, False, at, 0, 0, SYN, 0, said=(at, 0), options=first)
            put(one, True, back, 0, 1, SYN | ACK, 0, said=(at, at), options=second)
            put(one, False, back + 1000, 1, 1, ACK, 0, said=(back, at), options=third)
        at, data, turn = 700 * MS, 0, 0
        while data < size:
            one = subflows[turn % 3]
            turn += 1
            mapping = dss(ack=to_server, dsn=to_client + data, ssn=one.sent, length=SEGMENT * BURST)
            missing: list[int] = []
            for segment in range(BURST):
                at += 60_000
                place = one.sent + segment * SEGMENT
                if (packets + segment) % 200 == 7:
                    missing.append(place)
                else:
                    put(one, True, at, place, 1, ACK, SEGMENT, said=(at, at - one.delay), options=mapping)
                if segment % 2:
                    upto = missing[0] if missing else place + SEGMENT
                    ack = dss(ack=to_client + data + upto - one.sent)
                    put(one, False, at + 20_000, 1, upto, ACK, 0, said=(at, at), options=ack)
            for place in missing:
                at += 60_000
                put(one, True, at, place, 1, ACK, SEGMENT, said=(at, at - one.delay), options=mapping)
            one.sent += SEGMENT * BURST
            data += SEGMENT * BURST
    return packets


Times = tuple[float, float]
"""Of the clock, and of the processor, seconds."""
BY = ("clock", "processor")


def _processor() -> float:
    uses = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(use.ru_utime + use.ru_stime for use in uses)


def once(action: Callable[[], object]) -> Times:
    used, began = _processor(), time.perf_counter()
    action()
    return time.perf_counter() - began, _processor() - used


def least(times: list[Times]) -> Times:
    return min(one[0] for one in times), min(one[1] for one in times)


def program(command: list[str]) -> Callable[[], object]:
    """A program, pinned to one core as this one is."""
    quiet = subprocess.DEVNULL
    return lambda: subprocess.run(command, stdout=quiet, stderr=quiet, check=True)


def in_turns(actions: dict[str, tuple[Callable[[], object], int]], rounds: int) -> dict[str, Times]:
    """The least times of each action, which is done in so many of the rounds, spread over them."""
    times: dict[str, list[Times]] = {name: [] for name in actions}
    for number in range(rounds):
        say(f"round {number + 1} of {rounds}")
        for name, (action, often) in actions.items():
            if number * often // rounds != (number - 1) * often // rounds:
                times[name].append(once(action))
    return {name: least(taken) for name, taken in times.items()}


def main() -> int:
    parser = benching.parser(__doc__)
    parser.add_argument("--megabytes", type=int, default=300, help="of the download (default 300)")
    parser.add_argument("--runs", type=int, default=40, help="of the native pass (default 40)")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="where the capture stays")
    args = parser.parse_args()
    missing = [name for name in ("tshark", "tcptrace") if shutil.which(name) is None]
    if missing:
        print(f"missing: {' and '.join(missing)} (apt-get install {' '.join(missing)})", file=sys.stderr)
        return 3
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory() as folder:
        path = args.keep or Path(folder) / "download.pcap"
        say("making the capture")
        packets, size = generate(path, args.megabytes * 1_000_000), path.stat().st_size
        wanted = [word for field in FIELDS.split() for word in ("-e", field)]
        alone = (
            f"import importlib.util as u, sys; s = u.spec_from_file_location('tandem_trace_core', {core.__file__!r})"
        )
        alone += "; m = u.module_from_spec(s); s.loader.exec_module(m); m.analyse(sys.argv[1])"
        took = in_turns(
            {
                "native": (lambda: core.analyse(path), args.runs),
                "started": (program([sys.executable, "-S", "-c", alone, str(path)]), 5),
                "packets": (lambda: core.analyse(path, packets=True), 3),
                "tshark": (program(["tshark", *OPTIONS.split(), "-r", str(path), "-T", "fields", *wanted]), 2),
                "tcptrace": (program(["tcptrace", "-lrn", str(path)]), args.runs // 2),
            },
            args.runs,
        )
    own = took["native"]
    ratios = {name: (took[name][0] / own[0], took[name][1] / own[1]) for name in AIMS}
    if args.json:
        pairs = {"seconds": took, "ratios": ratios}
        told = {key: {name: dict(zip(BY, pair, strict=True)) for name, pair in of.items()} for key, of in pairs.items()}
        print(json.dumps({"packets": packets, "capture_bytes": size, **told}))
    else:
        rate = packets / own[0] / 1e6
        print(f"{packets} packets, {size / 1e6:.0f} MB, of a download of {args.megabytes} MB")
        print(f"native pass: {own[0] * 1e3:.1f} ms with bins ({rate:.1f} million packets a second)")
        with_start, with_packets = (took[name][0] * 1e3 for name in ("started", "packets"))
        print(f"  {with_start:.1f} ms with Python's start, {with_packets:.1f} ms with packets")
        for name, (clock, processor) in ratios.items():
            words = f"{clock:.1f} times as fast by the clock, {processor:.1f} times by the processor's time"
            print(f"{name}: {took[name][0]:.3f} s; the native pass is {words}")
    return 0 if all(min(ratios[name]) >= aim for name, aim in AIMS.items()) else 1


if __name__ == "__main__":
    sys.exit(main())
