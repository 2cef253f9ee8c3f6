"""Shaping on the probe, in namespaces: the rate holds both ways, and nothing of it stays."""

from __future__ import annotations

import re
import select
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from support.two_paths import Lab, lab, lab_with
from tandem import shaping as kernel
from tandem.shaping import Shape, Shaping, ShapingError

pytestmark = lab_with()
INTERFACES: dict[str, str | None] = {"a": "tmp5-a", "b": "tmp5-b"}


@pytest.fixture
def two() -> Iterator[Lab]:
    with lab(upwards=False) as made:
        lack = made.probe.inside(lambda: kernel.missing(Shape(down_bit_per_s=1e6, up_bit_per_s=1e6)))
        if lack is not None:
            pytest.skip(lack)
        yield made


def seconds(two: Lab, size: int, path: str, *, down: bool) -> float:
    """From before the first byte is sent over ``path`` until ``size`` are there; down: towards the probe."""
    number = "ab".index(path) + 1
    with two.server.inside(socket.socket) as listening:
        listening.bind((f"10.71.{number}.2", 0))
        listening.listen()
        probe = two.probe.inside(lambda: socket.create_connection(listening.getsockname(), 60))
        server, _ = listening.accept()
    sender, receiver = (server, probe) if down else (probe, server)
    with sender, receiver:
        began = time.monotonic()
        sending = threading.Thread(target=sender.sendall, args=(bytes(size),))
        sending.start()
        left = size
        while left:
            left -= len(receiver.recv(left))
        sending.join()
        return time.monotonic() - began


def leftovers(two: Lab) -> str:
    return two.probe.run("tc qdisc show | grep -v noqueue || true; ip -br link | grep tshape || true")


def test_a_rate_holds_down_and_up_on_its_path_alone(two: Lab) -> None:
    """Never quicker than the rate, less what a bucket lets through at once; the links would give more."""
    shaping = Shaping()
    two.probe.inside(lambda: shaping.apply({"a": Shape(down_bit_per_s=8e6, up_bit_per_s=4e6)}, INTERFACES))
    assert seconds(two, 1_000_000, "a", down=True) > 0.9 * 8 / 8
    assert seconds(two, 500_000, "a", down=False) > 0.9 * 4 / 4
    classes = two.probe.run("for d in $(ip -br link | cut -d' ' -f1 | cut -d@ -f1); do tc class show dev $d; done")
    assert {"ceil 4Mbit", "ceil 8Mbit"} <= set(re.findall(r"ceil \S+", classes))
    assert "tmp5-b" not in leftovers(two)
    assert two.probe.inside(shaping.state)["a"]["held"] is True
    assert two.probe.inside(shaping.remove) == []
    assert leftovers(two) == ""


def test_an_interface_that_went_takes_its_shaping_along(two: Lab) -> None:
    shaping = Shaping()
    two.probe.inside(lambda: shaping.apply({"a": Shape(down_bit_per_s=1e6, up_bit_per_s=1e6)}, INTERFACES))
    two.probe.run("ip link del tmp5-a")
    assert two.probe.inside(shaping.state)["a"]["held"] is False
    assert two.probe.inside(shaping.remove) == []
    assert leftovers(two) == ""


def test_all_or_nothing(two: Lab) -> None:
    shapes = {"a": Shape(up_bit_per_s=1e6), "b": Shape(up_bit_per_s=1e6)}
    shaping = Shaping()
    with pytest.raises(ShapingError, match="there is no interface nosuch0") as refused:
        two.probe.inside(lambda: shaping.apply(shapes, {"a": "tmp5-a", "b": "nosuch0"}))
    assert refused.value.retry is True
    assert leftovers(two) == ""


def test_another_programs_qdisc_is_left_alone(two: Lab) -> None:
    two.probe.run("tc qdisc add dev tmp5-a root handle 5: tbf rate 1mbit burst 3000 limit 9000")
    shaping = Shaping()
    with pytest.raises(ShapingError, match="tmp5-a has another program's tbf qdisc already"):
        two.probe.inside(lambda: shaping.apply({"a": Shape(up_bit_per_s=1e6)}, INTERFACES))
    assert "tbf 5:" in leftovers(two)


def test_a_delay_is_made_or_its_lack_is_named(two: Lab) -> None:
    shape, shaping = Shape(up_delay_ms=30, down_delay_ms=20), Shaping()
    lack = two.probe.inside(lambda: kernel.missing(shape))
    if lack is not None:
        assert "delay and loss need netem, which this kernel has not" in lack
        with pytest.raises(ShapingError, match="CONFIG_NET_SCH_NETEM"):
            two.probe.inside(lambda: shaping.apply({"a": shape}, INTERFACES))
        assert leftovers(two) == ""
        return
    two.probe.inside(lambda: shaping.apply({"a": shape}, INTERFACES))
    told = two.probe.run("ping -c 5 -i 0.2 10.71.1.2 | tail -1")
    least = float(told.split("=")[1].split("/")[0])  # the others hold ARP's round and a busy machine's
    assert least >= 50
    assert two.probe.inside(shaping.remove) == []
    assert leftovers(two) == ""


def test_a_loss_is_made_or_its_lack_is_named(two: Lab) -> None:
    """Each way its own share of the datagrams, and with a rate beside it."""
    shape, shaping = Shape(up_loss_percent=10, down_loss_percent=30, up_bit_per_s=20e6, down_bit_per_s=20e6), Shaping()
    lack = two.probe.inside(lambda: kernel.missing(shape))
    if lack is not None:
        with pytest.raises(ShapingError, match="CONFIG_NET_SCH_NETEM"):
            two.probe.inside(lambda: shaping.apply({"a": shape}, INTERFACES))
        assert leftovers(two) == ""
        return
    known_neighbours(two)  # ARP's own question would be lost now and then, and all that waits for its answer with it
    two.probe.inside(lambda: shaping.apply({"a": shape}, INTERFACES))
    up, down = lost(two, down=False), lost(two, down=True)
    print(f"of 2000 datagrams lost: up {up}, down {down}")
    # Five standard deviations of a binomial: 13 and 20 of 2000.
    assert 200 - 67 < up < 200 + 67
    assert 600 - 103 < down < 600 + 103
    assert two.probe.inside(shaping.remove) == []
    assert leftovers(two) == ""


def known_neighbours(two: Lab) -> None:
    """The two ends of path a need not ask for each other."""
    told = two.probe.run("ping -c 1 -W 5 10.71.1.2 >/dev/null; ip neigh show 10.71.1.2")
    back = two.server.run("ip neigh show 10.71.1.1")
    for space, line, address in ((two.probe, told, "10.71.1.2"), (two.server, back, "10.71.1.1")):
        words = line.split()
        device, hardware = words[words.index("dev") + 1], words[words.index("lladdr") + 1]
        space.run(f"ip neigh replace {address} lladdr {hardware} dev {device} nud permanent")


def lost(two: Lab, *, down: bool) -> int:
    """How many of 2000 datagrams over path a do not arrive; about 10 Mbit/s, so that no queue overflows."""
    probe, server = (
        space.inside(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) for space in (two.probe, two.server)
    )
    with probe, server:
        probe.bind(("10.71.1.1", 0))
        server.bind(("10.71.1.2", 0))
        sender, receiver = (server, probe) if down else (probe, server)
        arrived = 0

        def take(patience_s: float) -> None:
            nonlocal arrived
            while select.select([receiver], [], [], patience_s)[0]:
                receiver.recv(300)
                arrived += 1

        for _ in range(200):
            for _ in range(10):
                sender.sendto(bytes(200), receiver.getsockname())
            take(0.002)
        take(3.0)
        return 2000 - arrived
