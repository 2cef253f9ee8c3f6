"""In the virtual machine of ``two_stacks.py``: the same links, seeds and sizes on whatever kernel runs. ``stacks_scene.py N SECONDS SEED``;
JSON lines: the kernel, then a row a measurement.

- ``shares``: a download of 1 MB by Multipath TCP over links of 4 Mbit/s, 20 ms and 2 Mbit/s, 60 ms, with this kernel's scheduler: share of
  link a, goodput, and how long what arrived waited for what was before it in the stream (by the DSS option of each packet).
- ``shared``: bytes of Multipath TCP over those of one TCP Reno connection, all over one link of 3 Mbit/s that loses 1 %.
"""

from __future__ import annotations

import json
import os
import random
import socket
import struct
import sys
import threading
import time
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the tests' support
from endless_flow import A_TOO, A, SubflowLostError, flow

from support.emulated_links import RadioPair, radio_pair
from support.loaded_controllers import held
from support.two_paths import await_true
from tandem.mptcp import kernels, netlink, sysctls
from tandem.mptcp_abi import v094

ARMS = ("reno", "lia", "olia", "balia")
SIZE = 1_000_000
JOINED_S = 30.0
TRIES = 4


def say(**row: Any) -> None:
    print(json.dumps(row), flush=True)


class Arrivals:
    """What arrives on the probe's links, by packet sockets: interface, time, and where in the connection's stream it belongs."""

    def __init__(self, pair: RadioPair) -> None:
        self.seen: list[tuple[str, float, int, int]] = []
        self._first: dict[tuple[str, int], int] = {}
        self._over = threading.Event()
        self._threads = []
        for name in ("tmp5-a", "tmp5-b"):
            of_packets = (socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800))
            listening = pair.probe.inside(lambda of_packets=of_packets: socket.socket(*of_packets))
            listening.bind((name, 0x0800))
            listening.settimeout(0.2)
            thread = threading.Thread(target=self._listen, args=(name, listening), daemon=True)
            thread.start()
            self._threads.append(thread)

    def _listen(self, name: str, listening: socket.socket) -> None:
        with listening:
            while not self._over.is_set():
                try:
                    packet, sender = listening.recvfrom(65536)
                except TimeoutError:
                    continue
                if sender[2] != socket.PACKET_OUTGOING:
                    self._take(name, time.monotonic(), packet)

    def _take(self, name: str, now: float, packet: bytes) -> None:
        if packet[9] != socket.IPPROTO_TCP:
            return
        tcp = packet[(packet[0] & 15) * 4 : struct.unpack_from(">H", packet, 2)[0]]
        port, (sequence,), head, flags = tcp[2:4], struct.unpack_from(">I", tcp, 4), (tcp[12] >> 4) * 4, tcp[13]
        key = (name, int.from_bytes(port, "big"))
        if flags & 2:
            self._first[key] = sequence
        count = len(tcp) - head
        mapped = mapping(tcp[20:head]) if count else None
        if mapped is not None and key in self._first:
            data, subflow = mapped
            # One mapping may stand in several packets: the place of this one follows from its own sequence number.
            start = (data + (sequence - self._first[key] - subflow)) & 0xFFFFFFFF
            self.seen.append((name, now, start, count))

    def stop(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def waits_ms(self) -> list[float]:
        """How long each packet waited until all before it in the stream had come."""
        if not self.seen:
            return []
        rows = sorted(self.seen, key=lambda row: row[1])
        first = min((row[2] for row in rows), key=lambda start: (start - rows[0][2] + (1 << 31)) & 0xFFFFFFFF)
        waiting: dict[int, tuple[int, float]] = {}
        whole, waits = 0, []
        for _, now, start, count in rows:
            place = (start - first) & 0xFFFFFFFF
            if place + count <= whole:
                continue  # it came before, by the other link or again
            waiting.setdefault(place, (count, now))
            while (ready := next((p for p in waiting if p <= whole), None)) is not None:
                size, came = waiting.pop(ready)
                waits.append(1000 * (now - came))
                whole = max(whole, ready + size)
        return waits


def mapping(options: bytes) -> tuple[int, int] | None:
    """Data sequence number (its low 32 bits) and subflow sequence number of a DSS option (RFC 6824 and RFC 8684, 3.3); None without."""
    place = 0
    while place + 1 < len(options):
        kind, length = options[place], options[place + 1]
        if kind <= 1:
            place += 1
            continue
        if kind == 30 and length >= 4 and options[place + 2] >> 4 == 2 and options[place + 3] & 4:
            flags = options[place + 3]
            at = place + 4 + (0 if not flags & 1 else 8 if flags & 2 else 4)
            wide = 8 if flags & 8 else 4
            data = int.from_bytes(options[at : at + wide], "big") & 0xFFFFFFFF
            return data, int.from_bytes(options[at + wide : at + wide + 4], "big")
        place += max(length, 2)
    return None


def download(pair: RadioPair, source: str) -> dict[str, float]:
    arrivals = Arrivals(pair)
    with flow(pair, "cubic", source, endless=False) as one:
        began = time.monotonic()
        threading.Thread(target=lambda: one.server.sendall(bytes(SIZE)), daemon=True).start()
        came = 0
        while came < SIZE and (chunk := one.client.recv(1 << 18)):
            came += len(chunk)
        took = time.monotonic() - began
    arrivals.stop()
    waits = sorted(arrivals.waits_ms())
    links = {name: sum(row[3] for row in arrivals.seen if row[0] == name) for name in ("tmp5-a", "tmp5-b")}
    return {
        "share_a": links["tmp5-a"] / max(1, sum(links.values())),
        "goodput_bit_per_s": 8 * came / took,
        "wait_ms_mean": sum(waits) / max(1, len(waits)),
        "wait_ms_p95": waits[int(0.95 * (len(waits) - 1))] if waits else 0.0,
    }


def shares(count: int) -> None:
    with radio_pair({"a": 4e6, "b": 2e6}, {"a": 20, "b": 60}, 200) as pair:
        _server_keeps_to_one(pair)
        for number in range(count):
            say(cell="shares", arm="scheduler", number=number, **download(pair, A))


def shared(pair: RadioPair, arm: str, seconds: float) -> float | None:
    """None when the connection lost a subflow meanwhile, which a lossy link does to it now and then, and nobody brings back here."""
    with flow(pair, arm, A) as many, flow(pair, "reno", A, multipath=False) as one:
        try:
            many.joined(JOINED_S)
        except SubflowLostError:
            return None
        time.sleep(4)
        before = many.acked(), sum(one.acked().values())
        time.sleep(seconds)
        after = many.acked(), sum(one.acked().values())
        if len(after[0]) < 2 or any(after[0].get(name, 0) <= got for name, got in before[0].items()):
            return None
        return (sum(after[0].values()) - sum(before[0].values())) / max(1, after[1] - before[1])


def fairness(count: int, seconds: float, seed: int) -> None:
    with ExitStack() as stack:
        stack.enter_context(nullcontext() if v094.present() else held())
        pair = stack.enter_context(radio_pair({"a": 3e6, "b": 1e6}, {"a": 20, "b": 40}, 80))
        pair.tell("a", "down loss 0.01")
        _server_keeps_to_one(pair)  # before the route, which goes with the link's last address
        pair.probe.run(f"ip addr add {A_TOO} peer 10.71.1.2 dev tmp5-a")
        pair.server.run(f"ip route add {A_TOO} dev tmp5-as")
        if v094.present():
            pair.probe.inside(lambda: netlink.change_link_flags("tmp5-b", v094.IFF_NOMULTIPATH, v094.IFF_NOMULTIPATH))
            wanted = {A, A_TOO}
            await_true(lambda: pair.probe.inside(_known) == wanted, 60, "fullmesh has the link's two addresses")
        else:
            pair.probe.run(f"ip mptcp endpoint flush; ip mptcp endpoint add {A_TOO} dev tmp5-a subflow")
        cells = [arm for arm in ARMS for _ in range(count)]
        random.Random(seed).shuffle(cells)
        for number, arm in enumerate(cells):
            tries = (shared(pair, arm, seconds) for _ in range(TRIES))
            ratio = next((ratio for ratio in tries if ratio is not None), None)
            say(cell="shared", arm=arm, number=number, ratio=ratio)


def _known() -> frozenset[str]:
    return v094.parse_fullmesh((Path("/") / v094.FULLMESH).read_text())


def _server_keeps_to_one(pair: RadioPair) -> None:
    """On the v0.94 kernel: its links' own addresses are not told to the probe, which would open subflows to each."""
    if not v094.present():
        return
    for number, name in enumerate("ab", start=1):
        pair.server.run(f"ip addr del 10.71.{number}.2 peer 10.71.{number}.1 dev tmp5-{name}s")
        pair.server.run(f"ip addr add 10.71.{number}.2 peer 10.71.{number}.1 dev tmp5-{name}s scope host")
    told = {"10.71.1.2", "10.71.2.2"}
    await_true(lambda: not told & pair.server.inside(_known), 60, "fullmesh lets go of the links' own addresses")


def _as_the_papers() -> None:
    """On the v0.94 kernel, whose settings are the whole machine's: what a session chooses is the socket's."""
    if not v094.present():
        return
    settings: dict[str, str | int] = {
        "net.mptcp.mptcp_enabled": 1,
        "net.mptcp.mptcp_path_manager": "fullmesh",
        "net.mptcp.mptcp_scheduler": "default",
        "net.ipv4.tcp_congestion_control": "cubic",
        "net.ipv4.tcp_no_metrics_save": 1,
    }
    failed = [one for one in sysctls.apply(settings).values() if one.error is not None]
    if failed:
        raise SystemExit(f"{failed[0].name} = {failed[0].asked}: {failed[0].error}; hint: build it in (=y)")


def main() -> int:
    count, seconds, seed = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
    _as_the_papers()
    kernel = kernels.here()
    say(linux=os.uname().release, kernel=kernel.name, scheduler=kernel.scheduler())
    shares(count)
    fairness(count, seconds, seed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
