"""What round trips all the time cost the probe: processor time against polling its modems, and bytes of records against the polls'.

usage: bench_round_trips.py [--seconds N] [--json]

Root. Two paths are asked once a second over a lab's rated links to a real endpoint; counted is the processor time of the thread that asks,
hears and makes the records, gzipped lines included. Beside it the collector's poller polls two emulated modems once a second, as
bench_poll_cpu.py has it (without its records). Bytes: a second's batch of the exporter at rest (two polls), with two round trips and
without.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lab"))

from a_second import a_second
from asked_paths import AskedPaths, asked_paths
from bench_poll_cpu import by_collector, modem, write_timeline
from two_paths import lab, why_not

from tandem.export.lines import Line, body
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


def polled(seconds: int) -> float:
    """Processor seconds of the poller over as many."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        ports = []
        for name in ("a", "b"):
            write_timeline(Path(folder) / f"{name}.jsonl", 2 * seconds + 30)
            ports.append(stack.enter_context(modem(Path(folder), name, "generic")))
        return by_collector(Path(folder), ports, seconds).polling_s


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--json", action="store_true", help="print JSON")
    args = parser.parse_args()
    if why_not() is not None:
        raise SystemExit(f"bench_round_trips: {why_not()}")
    spent_s, records = asked(args.seconds)
    polling_s = polled(args.seconds)
    answered = [r for r in records if r.fields["outcome"] == "answered"]
    pairs = list(zip(answered[::2], answered[1::2], strict=False))
    chance = random.Random(1)
    rest, with_them = [], []
    for n, pair in enumerate(pairs):
        two = [r for r in a_second(n, time.time_ns(), chance) if r.measurement == "radio"]
        rest.append(batch(two, 60_000 + n))
        with_them.append(batch([*two, *pair], 60_000 + n))
    more = median(b - a for a, b in zip(rest, with_them, strict=True))
    told = {
        "seconds": args.seconds,
        "records": len(records),
        "answered": len(answered),
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
