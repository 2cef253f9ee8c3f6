"""How true the link emulator is, and what it costs: ``bench_link.py [--json] [--seconds S]`` (root).

For each case: capacity delivered of what could be, error of the delay, lateness of the writes, processor time of the link.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the tests' support

import benching
from benching import cpu_s, say

from support.linked_namespaces import OPERATOR, PROBE, Timeline, TwoEnds, two_ends
from tandem_bench.link import Constant, Played

TCP_ENDS = Path(__file__).resolve().parents[1] / "support/mptcp_ends.py"
SIZE = 1500
HEADERS = 52 / 1500  # IPv4 and TCP with timestamps, of a full packet: what payload cannot reach


@contextmanager
def link(offer: Constant | Played) -> Iterator[TwoEnds]:
    with tempfile.TemporaryDirectory() as folder, two_ends(offer, Path(folder)) as ends:
        yield ends


def lateness(ends: TwoEnds) -> dict[str, float]:
    rows = [row for direction in ("down", "up") for row in ends.rows(direction) if row["packets"]]
    packets = sum(row["packets"] for row in rows)
    mean = sum(row["late_us_mean"] * row["packets"] for row in rows) / max(1, packets)
    return {"late_us_mean": mean, "late_us_max": max((row["late_us_max"] for row in rows), default=0.0)}


def delay(rate: float, rtt_ms: float, seconds: float) -> dict[str, float]:
    """Half the capacity in evenly spaced packets: none waits, so each takes its bits over the rate and half the RTT."""
    with link(Constant(rate, rate, rtt_ms)) as ends:
        before = cpu_s(ends.link.pid)
        got = ends.datagrams(int(rate / 2 * seconds / 8 / SIZE), SIZE, rate / 2)
        spent = cpu_s(ends.link.pid) - before
        ends.link.stop()
        ideal_ns = SIZE * 8e9 / rate + rtt_ms * 5e5
        errors = sorted((got_ns - sent_ns - ideal_ns) / 1e3 for _, sent_ns, got_ns in got)
        quantiles = {f"delay_error_us_p{p}": errors[int(len(errors) * p / 100)] for p in (50, 99)}
        return quantiles | {"cpu_s_per_s": spent / seconds} | lateness(ends)


def varying(seconds: float) -> dict[str, float]:
    """A capacity that changes ten times a second, 1.5 times overloaded: delivered, over the integral of the capacity."""
    rates = [5e6 + 4e6 * ((7 * k) % 11) for k in range(int(seconds * 10))]
    plan = Timeline()
    for k, rate in enumerate(rates):
        plan.tick(k / 10, rate, buffer_down_bytes=300_000)
    with tempfile.TemporaryDirectory() as folder:
        epoch = time.monotonic_ns() + 1_000_000_000
        with link(Played(plan.write(Path(folder) / "t.jsonl"), epoch)) as ends:
            offered = 1.5 * max(rates)
            ends.datagrams(int(offered * seconds / 8 / SIZE), SIZE, offered, start_ns=epoch)
            ends.link.stop()
            rows = [row for row in ends.rows() if 0.5 < row["t_s"] <= seconds - 0.05]
            possible = sum(rates[round(row["t_s"] * 10) - 1] for row in rows) / 10
            # What leaves the queue arrives 10 ms later, in another row at the edges: 0.01 s of some 5 s.
            return {"delivered_share": sum(row["bytes"] for row in rows) * 8 / possible} | lateness(ends)


def tcp(links: int, down: float, up: float, seconds: float) -> dict[str, float]:
    """TCP down each link, then up, by itself at 40 ms: payload over what the capacity leaves for payload."""
    result: dict[str, float] = {}
    with ExitStack() as stack:
        pairs = [stack.enter_context(link(Constant(down, up, 40, 1_000_000, 1_000_000))) for _ in range(links)]
        spent = -sum(cpu_s(ends.link.pid) for ends in pairs)
        for direction, capacity in (("down", down), ("up", up)):
            received = [0] * links
            running = []
            for ends in pairs:
                source, sink, address = ends.operator, ends.probe, OPERATOR
                if direction == "up":
                    source, sink, address = ends.probe, ends.operator, PROBE
                argv = source.command([sys.executable, TCP_ENDS, "send", address, "5000", str(seconds + 3)])
                sender = stack.enter_context(subprocess.Popen(argv, stdout=subprocess.PIPE, text=True))
                assert sender.stdout is not None
                sender.stdout.readline()
                argv = sink.command([sys.executable, TCP_ENDS, "receive", address, "5000", str(seconds + 2), "6", "-"])
                running.append((sender, stack.enter_context(subprocess.Popen(argv, stdout=subprocess.PIPE, text=True))))
            for index, (sender, receiver) in enumerate(running):
                assert receiver.stdout is not None
                # The first two seconds are TCP's slow start, not the link.
                received[index] = sum(json.loads(receiver.stdout.readline())["tenths"][20:])
                receiver.wait()
                sender.wait()
            shares = [total * 8 / seconds / capacity / (1 - HEADERS) for total in received]
            result[f"{direction}_share_min"] = min(shares)
        spent += sum(cpu_s(ends.link.pid) for ends in pairs)
        for ends in pairs:
            ends.link.stop()
        late = [lateness(ends) for ends in pairs]
    result |= {key: max(each[key] for each in late) for key in late[0]}
    return result | {"cpu_s_per_link_s": spent / links / (2 * seconds + 4)}


def idle(seconds: float) -> dict[str, float]:
    with link(Constant(100e6, 30e6)) as ends:
        before = cpu_s(ends.link.pid)
        time.sleep(seconds)
        return {"cpu_s_per_s": (cpu_s(ends.link.pid) - before) / seconds}


def main() -> int:
    parser = benching.parser(__doc__)
    parser.add_argument("--seconds", type=float, default=5.0, help="length of each case [5]")
    args = parser.parse_args()
    span = args.seconds
    cases = {
        "idle": lambda: idle(span),
        "delay, 20 Mbit/s, 40 ms": lambda: delay(20e6, 40, span),
        "delay, 2 Mbit/s, 100 ms": lambda: delay(2e6, 100, span),
        "capacity varying 5 to 45 Mbit/s": lambda: varying(span),
        "one link, 150/50 Mbit/s, TCP": lambda: tcp(1, 150e6, 50e6, span),
        "two links, 100/30 Mbit/s, TCP": lambda: tcp(2, 100e6, 30e6, span),
    }
    results = {}
    for name, case in cases.items():
        say(f"measuring: {name}")
        results[name] = {key: round(value, 4) for key, value in case().items()}
        if not args.json:
            print(f"{name}: " + ", ".join(f"{key} {value:g}" for key, value in results[name].items()), flush=True)
    if args.json:
        print(json.dumps(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
