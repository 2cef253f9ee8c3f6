"""Captures, mutated without end, through the native pass: no panic, no hang, no memory without bound, and tables that hold together.

    ./kit run python tests/bench/fuzz_trace_core.py [--seconds 60] [--seed 1]

Begins from the captures of the unit tests. The mutator knows records, blocks and headers: it changes fields to
odd values, drops, repeats, swaps and cuts packets, writes garbage between and into them, changes the files' own headers, compresses the
outcome. Every input has ten seconds of processor time, and the process two gigabytes. An input that fails stays in ``--keep``.
"""

from __future__ import annotations

import gzip
import random
import resource
import signal
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the tests' support

import fuzzing

from support.capture_scenes import C0, S0, Multipath, plain_download
from support.captures import ACK, LINKS, MS, Packet, dss, framed, pcap, pcapng, summed
from tandem_server import tandem_trace_core as core

ODD = (0, 1, 2, 3, 4, 5, 7, 8, 12, 14, 15, 16, 20, 24, 28, 30, 40, 60, 127, 128, 255, 256, 1500, 32767, 32768, 65535)
SECONDS_EACH, MEMORY = 10, 2 << 30


def seeds() -> list[list[Packet]]:
    scenes = [plain_download().packets, plain_download("2001:db8::1", "2001:db8::2").packets]
    for version in (0, 1):
        scene = Multipath(version)
        _, s1 = scene.open()
        _, s2 = scene.join(100 * MS)
        for number in range(12):
            scene.data((s1, s2)[number % 2], (200 + number) * MS, number // 2 * 700, number * 700, 700)
            at_ns, back = (200 + number) * MS + 1000, (s1, s2)[number % 2].other()
            scene.acknowledge(back, at_ns, (number // 2 + 1) * 700, number * 700)
        # Payload before its mapping, which is on its first packet only.
        for number in (1, 2, 0):
            mapped = dss(dsn=scene.to_client + 8400, ssn=4201, length=2100) if number == 0 else dss(ack=scene.to_server)
            s1((300 + number) * MS, S0 + 4201 + 700 * number, C0 + 1, ACK, 700, mapped)
        scenes.append(scene.wire.packets)
    scenes.append([Packet(one.time_ns, summed(one.content), one.original) for one in scenes[0]])
    scenes.append([one for one in scenes[0] for _ in range(2)])
    return scenes


class Mutator:
    def __init__(self, draw: random.Random) -> None:
        self.draw, self.made = draw, seeds()

    def field(self, content: bytes) -> bytes:
        """One field, anywhere, of one, two, four or eight bytes, odd or random."""
        if not content:
            return content
        size = self.draw.choice((1, 1, 1, 2, 2, 4, 8))
        at = self.draw.randrange(max(1, len(content) - size + 1))
        value = self.draw.choice((*ODD, self.draw.getrandbits(64), (1 << (8 * size)) - 1, 1 << (8 * size - 1)))
        new = (value % (1 << (8 * size))).to_bytes(size, self.draw.choice(("big", "little")))
        return content[:at] + new + content[at + size :]

    def packet(self, packet: Packet) -> Packet:
        content, at, original = packet.content, packet.time_ns, packet.original
        kind = self.draw.randrange(8)
        if kind < 4:
            for _ in range(self.draw.randint(1, 4)):
                # Most of what is parsed lies in the first hundred bytes.
                content = self.field(content[:120]) + content[120:]
        elif kind == 4:
            content = content[: self.draw.randrange(len(content) + 1)]
        elif kind == 5:
            at = max(0, min((1 << 32) * 10**9 - 1, at + self.draw.randint(-(10**11), 10**11)))
        elif kind == 6:
            original = self.draw.choice((*ODD, 1 << 31))
        else:
            content += self.draw.randbytes(self.draw.randrange(40))
        return Packet(at, content, original)

    def capture(self) -> bytes:
        draw = self.draw
        name = draw.choice(list(LINKS))
        link, packets = LINKS[name][0], list(framed(draw.choice(self.made), name))
        for _ in range(draw.choice((0, 1, 2, 4, 8))):
            at = draw.randrange(len(packets))
            action = draw.randrange(6)
            if action < 3:
                packets[at] = self.packet(packets[at])
            elif action == 3:
                packets.insert(draw.randrange(len(packets) + 1), packets[at])
            elif action == 4 and len(packets) > 1:
                del packets[at]
            else:
                other = draw.randrange(len(packets))
                packets[at], packets[other] = packets[other], packets[at]
        order = draw.choice("<>")
        if draw.random() < 0.5:
            content = pcap(packets, link, order=order, nanoseconds=draw.random() < 0.5)
        else:
            content = pcapng(packets, link, order=order)
        for _ in range(draw.choice((0, 0, 1, 3))):
            content = self.field(content)
        if draw.random() < 0.1:
            at = draw.randrange(len(content) + 1)
            content = content[:at] + draw.randbytes(draw.randrange(100)) + content[at:]
        if draw.random() < 0.1:
            content = content[: draw.randrange(len(content) + 1)]
        if draw.random() < 0.05:
            content = gzip.compress(content, 1)
            if draw.random() < 0.5:
                content = self.field(content)
        return content


def check(tables: core.Tables) -> None:
    """What must hold whatever came."""
    totals = tables["totals"]["columns"]
    column = {name: np.frombuffer(data, dtype) for name, (dtype, data, _) in totals.items()}
    assert (column["new_bytes"] + column["duplicate_bytes"] == column["payload_bytes"]).all()
    assert (column["hole_fill_bytes"] <= column["new_bytes"]).all()
    assert (column["goodput_bytes"] <= column["payload_bytes"]).all()
    bits = np.unpackbits(np.frombuffer(totals["subflow"][2] or b"", np.uint8), bitorder="little")
    own = bits[: len(column["packets"])] == 0
    assert int(column["packets"][own].sum()) == tables["file"]["tcp_packets"] or tables["file"]["bounded"]


def main() -> int:
    parser = fuzzing.parser(__doc__)
    parser.add_argument("--keep", type=Path, default=Path("fuzz-trace-core-failed.bin"))
    args = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    mutator = Mutator(random.Random(args.seed))
    slowest = 0.0
    for count in fuzzing.rounds(args.seconds):
        content = mutator.capture()
        # The kernel ends a process that hangs: nothing else could, while the native code runs.
        signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS_EACH)
        began = time.perf_counter()
        try:
            few = {"intervals": 3, "segments": 4, "timestamps": 4, "mappings": 2, "unmapped": 2, "together_bytes": 2000}
            limits = few if count % 4 == 0 else None
            check(core.analyse_bytes(content, packets=count % 2 == 0, limits=limits))
        except BaseException:
            args.keep.write_bytes(content)
            print(f"input {count} of seed {args.seed} failed; it is in {args.keep}", file=sys.stderr)
            raise
        slowest = max(slowest, time.perf_counter() - began)
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    args.keep.unlink(missing_ok=True)
    tried = f"{count + 1} inputs without panic, hang or broken table"
    print(f"seed {args.seed}: {tried}; the slowest took {slowest * 1e3:.1f} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
