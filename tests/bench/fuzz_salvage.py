"""Torn and corrupted captures: each is cut to whole packets or removed, in bounded time; what stays is a beginning of what was.

    ./kit run python tests/bench/fuzz_salvage.py [--seconds 60] [--seed 1]

Half of them end anywhere, in zeros or in noise, as after a power cut; half have up to eight bytes changed anywhere. What is kept is
walked again without the code under test.
"""

from __future__ import annotations

import random
import struct
import sys
import tempfile
import time
from pathlib import Path

import fuzzing

from tandem.capture.pcap import salvage

MAGICS = ((0xA1B2C3D4, "<"), (0xA1B23C4D, "<"), (0xA1B2C3D4, ">"), (0xA1B23C4D, ">"))


def capture(chance: random.Random) -> tuple[bytes, str, list[int]]:
    """A whole capture, its byte order, and where its packets end."""
    magic, order = chance.choice(MAGICS)
    raw = bytearray(struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, chance.choice((64, 128, 262144)), 1))
    ends = []
    for _ in range(chance.randint(0, 60)):
        kept = chance.randint(1, 64)
        raw += struct.pack(
            order + "4I", chance.getrandbits(31), chance.randrange(10**6), kept, kept + chance.randrange(1500)
        )
        raw += chance.randbytes(kept)
        ends.append(len(raw))
    return bytes(raw), order, ends


def torn(raw: bytes, chance: random.Random) -> tuple[bytes, int]:
    """What a power cut leaves of it; and up to which byte it is as it was."""
    at = chance.randint(0, len(raw))
    tail = chance.choice((b"", bytes(chance.randint(1, 5000)), chance.randbytes(chance.randint(1, 300))))
    return raw[:at] + tail, at


def corrupted(raw: bytes, chance: random.Random) -> tuple[bytes, int]:
    """With bytes changed; and up to which byte it is as it was."""
    changed = bytearray(raw)
    places = [chance.randrange(len(raw)) for _ in range(chance.randint(1, 8))]
    for place in places:
        changed[place] = chance.choice((0, 255, chance.randrange(256)))
    return bytes(changed), min(places)


def packets(raw: bytes, order: str) -> int | None:
    """Whole packets of a file; None when it does not end with one."""
    at, found = 24, 0
    while at + 16 <= len(raw):
        at += 16 + int(struct.unpack_from(order + "I", raw, at + 8)[0])
        found += 1
    return found if at == len(raw) else None


def main() -> int:
    args = fuzzing.parser(__doc__).parse_args()
    chance = random.Random(args.seed)
    size = kept = 0
    slowest_s = 0.0
    with tempfile.TemporaryDirectory(prefix="tandem-fuzz-salvage-", dir="/dev/shm") as folder:
        left = Path(folder) / "x.pcap.tmp"
        for count in fuzzing.rounds(args.seconds):  # noqa: B007  told at the end
            whole, order, ends = capture(chance)
            raw, same = chance.choice((torn, corrupted))(whole, chance)
            left.write_bytes(raw)
            begun_s = time.perf_counter()
            told = salvage(left)
            slowest_s = max(slowest_s, time.perf_counter() - begun_s)
            result = b"" if told.file is None else told.file.read_bytes()
            due = sum(end <= same for end in ends)
            wrong = (
                "not a beginning" if not raw.startswith(result)
                else "fewer packets than were whole" if told.packets < due
                else "not whole packets" if told.file is not None and packets(result, order) != told.packets
                else "lengths do not add up" if told.bytes + told.lost_bytes != len(raw) or told.bytes != len(result)
                else None
            )  # fmt: skip
            if wrong is not None:
                print(f"{wrong}: {told} of {raw.hex()}")
                return 1
            if told.file is not None:
                told.file.unlink()
            kept, size = kept + told.packets, size + len(raw)
    print(
        f"seed {args.seed}: {count + 1} captures, {size} bytes, {kept} packets kept, slowest {slowest_s * 1e3:.1f} ms"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
