"""What round trips all the time cost the probe: processor time against polling its modems, and bytes of records against the polls'.

usage: bench_round_trips.py [--seconds N] [--json]

Root. Two paths are asked once a second over a lab's rated links to a real endpoint; counted is the processor time of the thread that asks,
hears and makes the records, gzipped lines included. Then, in this process alone, the collector's poller polls two emulated modems once a
second (identified before, and without its records). Bytes: a second's batch of the exporter at rest (two polls), with two round trips and
without.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the tests' support

import benching
from a_second import a_second
from benching import say

from support.modem_on_fake_clock import write_timeline
from support.round_trip_paths import AskedPaths, asked_paths
from support.two_paths import lab, why_not
from tandem.export.exporter import Line, body
from tandem.modem.poll import Poll
from tandem.modem.poller import Poller
from tandem.schema.line_protocol import encode
from tandem.schema.record import Record

COMMON = {"probe": "probe-1", "boot": "0d9f1a3c-7f4e-4b0c-9a55-0f1e2d3c4b5a"}


def batch(records: list[Record], seq: int) -> int:
    """Bytes of a request's body."""
    utc_ns = time.time_ns()
    return len(body([Line(seq + n, encode(r, COMMON, seq + n, utc_ns)) for n, r in enumerate(records)]))


def asked(seconds: float) -> tuple[float, list[Record]]:
    """Processor seconds of the thread over ``seconds``, and what it made in them."""
    with tempfile.TemporaryDirectory() as folder, lab() as made, asked_paths(made, Path(folder), 1.0) as paths:
        take, sizes = paths.round_trips._emit, []

        def encoded(records: list[Record]) -> None:
            sizes.append(batch(records, 1))
            take(records)

        paths.round_trips._emit = encoded
        return _counted(paths, seconds)


def _counted(paths: AskedPaths, seconds: float) -> tuple[float, list[Record]]:
    for path in "ab":
        paths.outcome(path, "answered")
    identity = paths.round_trips._thread.ident
    assert identity is not None
    clock = time.pthread_getcpuclockid(identity)
    before = time.clock_gettime(clock)
    time.sleep(seconds)
    spent = time.clock_gettime(clock) - before
    return spent, [paths.records.get() for _ in range(paths.records.qsize())]


@contextmanager
def modem(folder: Path, name: str, seconds: int) -> Iterator[Path]:
    """An emulated modem whose level changes every second; gives the name of its port."""
    levels = [-95.0 - 7 * (t % 3) for t in range(seconds)]
    ticks = [{"rsrp_dbm": level, "rssi_dbm": level + 30} for level in levels]
    timeline = write_timeline(folder / f"{name}.jsonl", ticks, name, 1.0)
    told = ["--family", "generic", "--timeline", str(timeline), "--link", str(folder / name)]
    command = [sys.executable, "-m", "tandem_bench", "modem", *told]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            if process.stdout is None or not process.stdout.readline().startswith("ready"):
                raise SystemExit("bench_round_trips: the emulated modem did not start")
            yield folder / name
        finally:
            process.terminate()


def polled(seconds: int) -> float:
    """Processor seconds of the poller over as many."""
    known = threading.Semaphore(0)

    def on_poll(poll: Poll) -> None:
        if poll.failure is None:
            known.release()

    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        ports = {path: stack.enter_context(modem(Path(folder), path, seconds + 60)) for path in ("a", "b")}
        pollers = [Poller(path, path.upper(), str(port), "auto", 1.0, on_poll) for path, port in ports.items()]
        for poller in pollers:
            poller.start()
        for _ in range(6):
            known.acquire()
        before = time.process_time()
        time.sleep(seconds)
        spent = time.process_time() - before
        for poller in pollers:
            poller.stop()
        return spent


def main() -> int:
    parser = benching.parser(__doc__)
    parser.add_argument("--seconds", type=int, default=60, help="of each of the two (default 60)")
    args = parser.parse_args()
    if why_not() is not None:
        raise SystemExit(f"bench_round_trips: {why_not()}")
    say(f"round trips for {args.seconds} s")
    spent_s, records = asked(args.seconds)
    say(f"polling for {args.seconds} s")
    polling_s = polled(args.seconds)
    answered = [r for r in records if r.fields["outcome"] == "answered"]
    pairs = list(zip(answered[::2], answered[1::2], strict=False))
    chance = random.Random(1)
    rest, with_them = [], []
    for n, pair in enumerate(pairs):
        two = [r for r in a_second(n, chance) if r.measurement == "radio"]
        rest.append(batch(two, 60_000 + n))
        with_them.append(batch([*two, *pair], 60_000 + n))
    more = median(b - a for a, b in zip(rest, with_them, strict=True))
    told = {"seconds": args.seconds, "records": len(records), "answered": len(answered)}
    told |= {
        "per_mille_of_a_core": spent_s / args.seconds * 1e3,
        "polling_per_mille_of_a_core": polling_s / args.seconds * 1e3,
        "to_polling": spent_s / polling_s,
        "batch_bytes": median(rest),
        "more_bytes": more,
        "batch_ratio": median(b / a for a, b in zip(rest, with_them, strict=True)),
    }
    print(json.dumps(told) if args.json else "\n".join(f"{name:<28} {value:g}" for name, value in told.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
