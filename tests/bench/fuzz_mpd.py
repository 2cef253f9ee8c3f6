"""Mutated manifests: each must be a presentation or one MpdError, in bounded time.

./kit run python tests/bench/fuzz_mpd.py [--seconds 60] [--seed 1]
"""

from __future__ import annotations

import random
import sys

import fuzzing

from tandem.experiment.dash.mpd import parse
from tandem.experiment.dash.mpd_xml import MpdError
from tandem_server.content.presentation import KINDS, LADDER, complexity, manifest, track

URL = "http://203.0.113.10:8480/v1/content/film/film.mpd"
PIECES = (
    b'"', b"<", b">", b"/>", b"$Number$", b"$Time$", b"$Number%099d$", b'r="-1"', b'r="999999999999"', b'd="0"', b'd="1"',
    b'timescale="0"', b'duration="1"', b'type="dynamic"', b"<!DOCTYPE a [", b"<!ENTITY a 'b'>", b"&a;", b"\xff\xfe", b"\0", b"&#0;",
    b"<Period>", b"</Period>", b"<SegmentTimeline>", b"<S/>", b'startNumber="-1"', b'mediaPresentationDuration="P9999D"', b"-", b"9" * 18,
)  # fmt: skip


WEIGHTS = complexity(60, 1)
SEEDS = [
    manifest(kind, length, [track(rung, length, WEIGHTS) for rung in LADDER[:3]]).encode()
    for kind in KINDS
    for length in (6, 15)
]


def mutated(chance: random.Random) -> bytes:
    """One of the server's manifests with one to eight wounds."""
    document = bytearray(chance.choice(SEEDS))
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


if __name__ == "__main__":
    sys.exit(fuzzing.documents(__doc__, mutated, lambda document: parse(document, URL), MpdError))
