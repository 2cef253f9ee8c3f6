"""Two namespaces with one link between them, and datagrams through it. Shared by the lab tests and the link's benchmark."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tandem_bench.link import Constant, LinkProcess, LinkSpec, Played
from tandem_bench.topology.namespace import Namespace

UDP_ENDS = Path(__file__).with_name("udp_ends.py")
PROBE, OPERATOR = "10.64.0.2", "10.64.0.1"


@dataclass
class TwoEnds:
    probe: Namespace
    operator: Namespace
    link: LinkProcess
    log: Path

    def datagrams(
        self, count: int, size: int, rate: float, *, start_ns: int = 0, offered: Callable[[], None] = lambda: None
    ) -> list[tuple[int, int, int]]:
        """Send down; what arrived as (number, sent_ns, got_ns). The link's log says when all have arrived or been dropped. ``offered``:
        called when the link has them all."""
        receive = self.probe.command([sys.executable, UDP_ENDS, "receive", "4000"])
        send = [sys.executable, UDP_ENDS, "send", PROBE, "4000", *map(str, (count, size, rate, start_ns))]
        before = self.total("offered_packets")
        with subprocess.Popen(receive, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as receiver:
            assert receiver.stdout is not None
            assert receiver.stdout.readline() == "ready\n"
            subprocess.run(self.operator.command(send), check=True)
            self.until(lambda: self.total("offered_packets") == before + count)
            offered()
            self.until(lambda: self.total("packets") + self.total("dropped_packets") == self.total("offered_packets"))
            return [tuple(row) for row in json.loads(receiver.communicate()[0])]

    def until(self, condition: Callable[[], bool]) -> None:
        until = time.monotonic() + 120
        while not condition():
            assert time.monotonic() < until, self.rows()[-3:]
            time.sleep(0.02)

    def total(self, key: str, direction: str = "down") -> int:
        """Of a quantity that the log counts."""
        return sum(row[key] for row in self.rows(direction))

    def rows(self, direction: str = "down") -> list[dict]:
        """The log so far; whole after the link has stopped."""
        rows = [json.loads(line) for line in self.log.read_text().splitlines(keepends=True) if line.endswith("\n")]
        return [row for row in rows if row["direction"] == direction]


@dataclass
class Timeline:
    """A timeline file in the making: each call adds a tick."""

    lines: list[dict] = field(default_factory=list)

    def tick(self, t_s: float, down: float, **more: object) -> Timeline:
        base = {
            "t_s": t_s,
            "rsrp_dbm": None,
            "down_bit_per_s": down,
            "up_bit_per_s": 10e6,
            "rtt_ms": 20.0,
            "loss_down": 0.0,
        }
        base |= {
            "loss_up": 0.0,
            "buffer_down_bytes": 2_000_000,
            "buffer_up_bytes": 500_000,
            "outage": False,
            "queue": "kept",
        }
        self.lines.append(base | more)
        return self

    def write(self, path: Path) -> Path:
        header = {
            "format": "tandem-timeline/1",
            "operator": "A",
            "tick_s": 0.1,
            "duration_s": 10,
            "scenario": "x",
            "seed": 1,
        }
        path.write_text("".join(json.dumps(line) + "\n" for line in [header, *self.lines]))
        return path


@contextmanager
def two_ends(offer: Constant | Played, folder: Path, *more: str) -> Iterator[TwoEnds]:
    probe, operator = Namespace("probe", {}), Namespace("operator", {})
    try:
        for namespace in (probe, operator):
            namespace.open()
            namespace.sysctl({"net.ipv6.conf.default.disable_ipv6": "1"})
        log = folder / "link.jsonl"
        with LinkProcess(LinkSpec(probe.path, "wwan0", operator.path, "ran0", offer, log, "A", more=more)) as link:
            probe.run(["ip", "address", "add", f"{PROBE}/30", "dev", "wwan0"])
            operator.run(["ip", "address", "add", f"{OPERATOR}/30", "dev", "ran0"])
            yield TwoEnds(probe, operator, link, log)
    finally:
        probe.close()
        operator.close()
