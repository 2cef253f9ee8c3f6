"""The netem link on a kernel that has netem: ``python3 tests/system/netem_link.py``, as root, with firmware/bench/src on PYTHONPATH.

Needs Python's standard library only, iproute2 and util-linux, so that it runs in a small virtual machine. One line a check; exit status
0 all hold, 1 one does not, 3 this machine cannot (the reason is printed). Rates are low and tolerances wide: an emulated machine is slow.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "lab"))

from two_ends import Timeline, TwoEnds, two_ends

from tandem_bench.link.emulator import Constant, LinkError, LinkSpec, Played
from tandem_bench.link.netem import NetemLink, lack
from tandem_bench.topology.requirements import MachineError

S = 1_000_000_000
FOLDER = Path(tempfile.mkdtemp(prefix="netem-link-"))


class CheckError(AssertionError):
    """A check does not hold."""


def hold(truth: bool, told: object) -> None:
    if not truth:
        raise CheckError(str(told))


@contextmanager
def ends(offer: Constant | Played) -> Iterator[TwoEnds]:
    with two_ends(offer, FOLDER, make=NetemLink) as made:
        made.datagrams(3, 50, 10_000)  # so that no later one waits for ARP
        yield made


def delays_ms(got: list[tuple[int, int, int]]) -> list[float]:
    return [(got_ns - sent_ns) / 1e6 for _, sent_ns, got_ns in got]


def delay() -> str:
    with ends(Constant(50e6, 50e6, rtt_ms=120)) as made:
        far = statistics.median(delays_ms(made.datagrams(40, 200, 100_000)))
        made.link.set("down", "delay_us", 5000)
        near = statistics.median(delays_ms(made.datagrams(40, 200, 100_000)))
        made.link.clear("down", "delay_us")
        again = statistics.median(delays_ms(made.datagrams(40, 200, 100_000)))
    hold(60 <= far < 100 and 5 <= near < 45 and 60 <= again < 100, (far, near, again))
    return f"60 ms set: {far:.1f}; 5 ms set: {near:.1f}; cleared: {again:.1f} ms"


def rate() -> str:
    with ends(Constant(2e6, 2e6, rtt_ms=10, buffer_down_bytes=2_000_000)) as made:
        got = made.datagrams(250, 1250, 20e6)
    hold(len(got) == 250, len(got))
    late = got[50:]  # after tbf's bucket
    found = (len(late) - 1) * (1250 + 42) * 8e9 / (late[-1][2] - late[0][2])
    hold(0.5e6 < found < 2.2e6, found)  # an emulated machine may be slower, never faster
    return f"2 Mbit/s set: {found / 1e6:.2f} Mbit/s with headers"


def loss() -> str:
    with ends(Constant(50e6, 50e6, rtt_ms=2, loss_down=0.2)) as made:
        came = len(made.datagrams(1500, 200, 2e6))
    hold(1100 < came < 1300, came)
    return f"20 % set: {100 - came / 15:.1f} % lost"


def buffer() -> str:
    with ends(Constant(1e6, 1e6, rtt_ms=2, buffer_down_bytes=20_000)) as made:
        came = len(made.datagrams(200, 1000, 50e6))
    hold(10 <= came < 120, came)
    return f"20 kB set: {came} of 200 at once came through"


def outage(queue: str) -> Callable[[], str]:
    def check() -> str:
        # The plan's beginning has to be named before the link is built, and how long that takes is the machine's affair.
        for head_s in (12, 40, 100):
            plan = Timeline().tick(0, 5e6).tick(1.0, 5e6, outage=True, queue=queue).tick(3.0, 5e6)
            epoch = time.monotonic_ns() + head_s * S
            with ends(Played(plan.write(FOLDER / f"{queue}.jsonl"), epoch)) as made:
                if time.monotonic_ns() < epoch - head_s * S // 2:  # both ends take their time to begin, too
                    return played(made, epoch)
        raise CheckError("the machine is too slow: not ready 50 s after it began")

    def played(made: TwoEnds, epoch: int) -> str:
        # One every 20 ms for 4 s. The ends begin at once and wait for the beginning.
        got = made.datagrams(200, 250, 100_000, start_ns=epoch, idle_s=3.0, first_s=120.0)
        failed = made.link.poll()
        hold(failed is None, failed)
        came = {number: got_ns for number, _, got_ns in got}
        within = range(60, 140)  # edges left out
        hold({*range(40), *range(165, 200)} <= came.keys(), sorted(came))
        if queue == "kept":
            hold(all(came.get(n, 0) >= epoch + 2.9 * S for n in within), [n for n in within if n not in came])
        else:
            hold(not [n for n in within if n in came], [n for n in within if n in came])
        return f"{len(came)} of 200 came"

    return check


def refusal() -> str:
    with ends(Constant(5e6, 5e6)) as made:
        try:
            made.link.set("down", "loss", 1.5)
        except LinkError as error:
            said = str(error)
        else:
            raise CheckError("a loss of 1.5 was taken")
        hold("wwan0" in made.probe.run(["ls", "/sys/class/net"]), "no device")
        hold(made.link.stop() == 0, "it failed")
        hold("wwan0" not in made.probe.run(["ls", "/sys/class/net"]), "its device stayed")
    try:
        NetemLink(LinkSpec("/proc/0/ns/net", "wwan0", "/proc/0/ns/net", "ran0", Constant(1e6, 1e6))).start()
    except LinkError:
        return said
    raise CheckError("a namespace that is not there was taken")


CHECKS: dict[str, Callable[[], str]] = {
    "delay": delay,
    "rate": rate,
    "loss": loss,
    "buffer": buffer,
    "outage, queue kept": outage("kept"),
    "outage, queue dropped": outage("dropped"),
    "refusal and end": refusal,
}


def main() -> int:
    """Exit status as said above."""
    why = lack()
    if why is not None:
        print(f"cannot: {why}")
        return 3
    wrong = 0
    for name, check in CHECKS.items():
        try:
            print(f"ok    {name}: {check()}", flush=True)
        except (CheckError, LinkError, MachineError) as error:
            wrong += 1
            print(f"WRONG {name}: {error}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
