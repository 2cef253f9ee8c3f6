"""Mutated manifests: each must be a presentation or one MpdError, in bounded time.

./kit run python tests/bench/fuzz_mpd.py [--seconds 60] [--seed 1]
"""

from __future__ import annotations

import random
import sys
import time

import fuzzing

from tandem.experiment.dash.mpd import parse
from tandem.experiment.dash.xml_reading import MpdError
from tandem_server.content.ladder import LADDER
from tandem_server.content.layout import KINDS, manifest
from tandem_server.content.synthetic import complexity, track

URL = "http://203.0.113.10:8480/v1/content/film/film.mpd"
PIECES = (
    b'"', b"<", b">", b"/>", b"$Number$", b"$Time$", b"$Number%099d$", b'r="-1"', b'r="999999999999"', b'd="0"', b'd="1"',
    b'timescale="0"', b'duration="1"', b'type="dynamic"', b"<!DOCTYPE a [", b"<!ENTITY a 'b'>", b"&a;", b"\xff\xfe", b"\0", b"&#0;",
    b"<Period>", b"</Period>", b"<SegmentTimeline>", b"<S/>", b'startNumber="-1"', b'mediaPresentationDuration="P9999D"', b"-", b"9" * 18,
)  # fmt: skip


def mutated(chance: random.Random, seed: bytes) -> bytes:
    """``seed`` with one to eight wounds."""
    document = bytearray(seed)
    for _ in range(chance.randint(1, 8)):
        at = chance.randrange(len(document) + 1)
        wound = chance.randrange(5)
        if wound == 0:
            document[at:at] = chance.choice(PIECES)
        elif wound == 1:
            del document[at : at + chance.randint(1, 200)]
        elif wound == 2 and at < len(document):
            document[at] = chance.randrange(256)
        elif wound == 3:
            other = chance.randrange(len(document) + 1)
            document[at:at] = document[other : other + chance.randint(1, 400)]
        else:
            digits = [i for i, byte in enumerate(document) if 48 <= byte <= 57]
            if digits:
                document[chance.choice(digits)] = chance.choice(b"0123456789-e")
    return bytes(document)


def main() -> int:
    """Fuzz, and tell what was done."""
    args = fuzzing.parser(__doc__).parse_args()
    chance = random.Random(args.seed)
    weights = complexity(60, 1)
    seeds = [
        manifest(kind, length, [track(rung, length, weights) for rung in LADDER[:3]]).encode()
        for kind in KINDS
        for length in (6, 15)
    ]
    size = played = 0
    slowest_s = 0.0
    for number in fuzzing.rounds(args.seconds):  # noqa: B007  told at the end
        document = mutated(chance, chance.choice(seeds))
        begun = time.monotonic()
        try:
            parse(document, URL)
            played += 1
        except MpdError as error:
            if "\n" in str(error):
                print(f"more than one line: {error!r} of {document!r}")
                return 1
        slowest_s = max(slowest_s, time.monotonic() - begun)
        size += len(document)
    tried = f"{number + 1} manifests, {size} bytes, {played} of them presentations, the others one error"
    print(f"seed {args.seed}: {tried}; the slowest took {slowest_s:.3f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
