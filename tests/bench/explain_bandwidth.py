"""Why is Multipath TCP slower than TCP over the better path where the bandwidth ratio is 20? One thing changed at a time.

    ./kit run python tests/bench/explain_bandwidth.py [--mode reqresp] [--quick] [--json FILE]

Root; as ``reproduce_bandwidth.py`` at one ratio. Beside it the kernel is asked (``ss -Mm``, some times a second) how large the
Multipath TCP socket's send buffer is and how much it holds: what is unacknowledged at the level of data, on whichever path.
"""

from __future__ import annotations

import random
import re
import shutil
import subprocess
import sys
import threading
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from reproduce_bandwidth import columns_of, one_round, summed, with_links
from trends import Bench, Progress, bench, finish, options, settle, spread

_LOOK_S = 0.2
_MEMORY = re.compile(r"skmem:\(r(?P<received>\d+),rb\d+,t\d+,tb(?P<buffer>\d+),f\d+,w(?P<held>\d+)")
KERNELS = "4096 16384 4194304"
"""net.ipv4.tcp_wmem as the kernel has it."""


@dataclass(frozen=True)
class Variant:
    """What is different. ``tcp_wmem``: of both ends. ``send_buffer_bytes``, ``receive_buffer_bytes``: the experiment's parameters."""

    name: str
    tcp_wmem: str = KERNELS
    congestion_control: str | None = None
    rtt_ms: tuple[float, float] | None = None
    queue_b_bytes: int | None = None
    primary: str = "a"
    send_buffer_bytes: int | None = None
    receive_buffer_bytes: int | None = None


VARIANTS = (
    Variant("as it is"),
    Variant("tcp_wmem up to 32 MB", "4096 16384 33554432"),
    Variant("tcp_wmem from 256 KB on", "4096 262144 33554432"),
    Variant("send buffer 1 MB", send_buffer_bytes=1 << 20),
    Variant("receive buffer 4 MB", receive_buffer_bytes=4 << 20),
    Variant("queue of b 8 kB", queue_b_bytes=8000),
    Variant("both 20 ms", rtt_ms=(20, 20)),
    Variant("primary b", primary="b"),
    Variant("reno", congestion_control="reno"),
    Variant("bbr", congestion_control="bbr"),
)
QUICK_VARIANTS = (VARIANTS[0], VARIANTS[2])


@dataclass
class Watch:
    """Looks at the sender's Multipath TCP sockets from another thread, while it is entered. Bytes of the kernel's memory."""

    enter: Sequence[str]
    buffers: list[int] = field(default_factory=list)
    held: list[int] = field(default_factory=list)

    def __enter__(self) -> Watch:
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ss")
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._done.wait(_LOOK_S):
            argv = [*self.enter, "ss", "--mptcp", "--memory", "--no-header", "--numeric", "state", "established"]
            told = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True).stdout
            for found in _MEMORY.finditer(told):
                if int(found["held"]):  # the control channel's sockets, and one that is over, hold nothing
                    self.buffers.append(int(found["buffer"]))
                    self.held.append(int(found["held"]))


def measure(made: Bench, args: Namespace, variants: Sequence[Variant]) -> list[dict[str, Any]]:
    """Every variant so many times, in a random order."""
    order = [variant for variant in variants for _ in range(args.repetitions)]
    random.Random(f"tandem explain {args.seed}").shuffle(order)
    progress, found = Progress(len(order), "rounds"), []
    sender = made.pair.probe if args.mode == "oneway" else made.pair.server
    for number, variant in enumerate(order):
        made.buffers({"net.ipv4.tcp_wmem": variant.tcp_wmem})
        made.pair.offer({"a": args.ratio * 1e6, "b": 1e6})
        if variant.queue_b_bytes is not None:
            made.pair.tell("b", f"both buffer_bytes {variant.queue_b_bytes}")
        for path, rtt_ms in zip("ab", variant.rtt_ms or args.rtt_ms, strict=True):
            made.pair.tell(path, f"both delay_us {rtt_ms * 500}")
        with Watch(sender.enter) as watch:
            told = one_round(
                made, args, number, primary=variant.primary, congestion_control=variant.congestion_control or args.congestion_control,
                send_buffer_bytes=variant.send_buffer_bytes or args.send_buffer_bytes, receive_buffer_bytes=variant.receive_buffer_bytes,
            )  # fmt: skip
        told["variant"] = variant.name
        told["send_buffer_kb"] = _kb(watch.buffers)
        told["held_kb"] = _kb(watch.held)
        found.append(told)
        progress.step(f"(last: {variant.name})")
    return found


def _kb(values: list[int]) -> float | None:
    middle = spread(values).median
    return None if middle is None else middle / 1000


def main() -> int:
    parser = options(__doc__)
    with_links(parser)
    parser.add_argument("--ratio", type=float, default=20.0, help="(default: %(default)s)")
    parser.add_argument("--seconds", type=float, help="of each transfer (default: 5)")
    args = parser.parse_args()
    if shutil.which("ss") is None:
        raise SystemExit("no ss; hint: install iproute2")
    settle(args, {"seconds": 5.0, "repetitions": 2}, {"seconds": 0.5, "repetitions": 1})
    variants = QUICK_VARIANTS if args.quick else VARIANTS
    with bench({"a": args.ratio, "b": 1.0}, dict(zip("ab", args.rtt_ms, strict=True)), args.queue_ms) as made:
        links = (
            f"a {args.ratio:g} Mbit/s and {args.rtt_ms[0]:g} ms, b 1 Mbit/s and {args.rtt_ms[1]:g} ms, queues of {args.queue_ms:g} ms (at "
            f"least 30 kB: 240 ms of b); {args.mode}, {args.seconds:g} s a transfer, primary {args.primary}; tcp_wmem {KERNELS}"
        )
        setting = made.setting(args, links)
        found = measure(made, args, variants)
    names = [v.name for v in variants]
    rows = summed(found, "variant", names)
    for row in rows:
        group = [f for f in found if f["variant"] == row["variant"]]
        row |= {name: spread(f[name] for f in group).median for name in ("send_buffer_kb", "held_kb")}
    columns = columns_of("variant", "", ("C_a", ".2f", "c_a"), ("C_total", ".2f", "c_total"), ("MPTCP", ".2f", "mptcp"))
    columns += [("send buffer kB", ".0f", "send_buffer_kb"), ("held kB", ".0f", "held_kb"), ("failed", "d", "failed")]
    print("medians; goodputs in Mbit/s; send buffer and what it holds while Multipath TCP sends: kernel memory")
    return finish(args, setting, columns, rows, found)


if __name__ == "__main__":
    sys.exit(main())
