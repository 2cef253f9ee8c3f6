"""The netem link on a kernel that has netem: ``python3 tests/support/netem_link.py``, as root, with firmware/bench/src on PYTHONPATH.

Needs Python's standard library only, iproute2 and util-linux, so that it runs in a small virtual machine. One line a check; exit status
0 all hold, 1 one does not, 3 this machine cannot (the reason is printed). Nothing is held that a slow machine decides: it adds to what is
set and takes nothing away.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # in the machine nobody says where the tests are

from support.two_ends import Timeline, TwoEnds, two_ends
from tandem_bench.link.emulator import Constant, LinkError, LinkSpec, Played
from tandem_bench.link.netem import NetemLink, lack
from tandem_bench.topology.requirements import MachineError

S = 1_000_000_000
PATIENT = {"idle_s": 3.0, "first_s": 60.0}
"""For what comes late because the machine is slow: nothing of it may be taken for lost."""
FOLDER = Path(tempfile.mkdtemp(prefix="netem-link-"))


class CheckError(AssertionError):
    """A check does not hold."""


def hold(truth: bool, told: object) -> None:
    if not truth:
        raise CheckError(str(told))


@contextmanager
def ends(offer: Constant | Played) -> Iterator[TwoEnds]:
    with two_ends(offer, FOLDER, make=NetemLink) as made:
        made.datagrams(3, 50, 10_000, first_s=60.0)  # so that no later one waits for ARP
        yield made


def least_ms(got: list[tuple[int, int, int]]) -> float:
    """What the fastest took: a machine adds to it and takes nothing away."""
    return min(got_ns - sent_ns for _, sent_ns, got_ns in got) / 1e6


def delay() -> str:
    with ends(Constant(50e6, 50e6, rtt_ms=2000)) as made:
        far = least_ms(made.datagrams(40, 200, 100_000, **PATIENT))
        made.link.set("down", "delay_us", 5000)
        near = least_ms(made.datagrams(40, 200, 100_000, **PATIENT))
        made.link.clear("down", "delay_us")
        again = least_ms(made.datagrams(40, 200, 100_000, **PATIENT))
    hold(5 <= near < 1000 <= min(far, again), (far, near, again))
    return f"1000 ms set: {far:.1f}; 5 ms set: {near:.1f}; cleared: {again:.1f} ms"


def rate() -> str:
    with ends(Constant(1e6, 1e6, rtt_ms=10, buffer_down_bytes=2_000_000)) as made:
        got = made.datagrams(250, 1250, 20e6, **PATIENT)
    hold(len(got) == 250, len(got))
    # By what it may not take less than: tbf's bucket is left out, and an emulated machine may be slower.
    found = 200 * (1250 + 42) * 8e9 / (max(got_ns for *_, got_ns in got) - min(sent_ns for _, sent_ns, _ in got))
    hold(found < 1e6, found)
    return f"1 Mbit/s set: {found / 1e6:.2f} Mbit/s with headers"


def loss() -> str:
    with ends(Constant(50e6, 50e6, rtt_ms=2, loss_down=0.2)) as made:
        came = len(made.datagrams(1500, 200, 2e6, **PATIENT))
    hold(1100 < came < 1300, came)  # six standard deviations
    return f"20 % set: {100 - came / 15:.1f} % lost"


def buffer() -> str:
    # So slow that next to nothing leaves the buffer while all are sent, however long a slow machine takes for it.
    with ends(Constant(1e5, 1e5, rtt_ms=2, buffer_down_bytes=20_000)) as made:
        came = len(made.datagrams(200, 1000, 50e6, **PATIENT))
    hold(10 <= came < 120, came)
    return f"20 kB set: {came} of 200 at once came through"


def outage(queue: str) -> Callable[[], str]:
    def check() -> str:
        # The plan's beginning has to be named before the link is built, and how long that takes is the machine's affair.
        for head_s in (12, 40, 100):
            plan = Timeline().tick(0, 5e6).tick(2.0, 5e6, outage=True, queue=queue).tick(8.0, 5e6)
            epoch = time.monotonic_ns() + head_s * S
            with ends(Played(plan.write(FOLDER / f"{queue}.jsonl"), epoch)) as made:
                if time.monotonic_ns() < epoch - head_s * S // 2:  # both ends take their time to begin, too
                    return played(made, epoch)
        raise CheckError("the machine is too slow: not ready 50 s after it began")

    def played(made: TwoEnds, epoch: int) -> str:
        # One every 100 ms for 12 s. The ends begin at once and wait for the beginning; a link that changes late by up to 2 s is as good.
        got = made.datagrams(120, 250, 20_000, start_ns=epoch, idle_s=8.0, first_s=120.0)
        failed = made.link.poll()
        hold(failed is None, failed)
        came = {number: got_ns for number, _, got_ns in got}
        within = range(40, 80)
        hold({*range(10), *range(100, 120)} <= came.keys(), sorted(came))
        if queue == "kept":
            hold(all(came.get(n, 0) >= epoch + 7.9 * S for n in within), [n for n in within if n not in came])
        else:
            hold(not [n for n in within if n in came], [n for n in within if n in came])
        return f"{len(came)} of 120 came"

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
