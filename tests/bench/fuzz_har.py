"""Mutated HTTP archives, by value and by byte: each is a page or one error, in bounded time.

./kit run python tests/bench/fuzz_har.py [--seconds 60] [--seed 1]
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the tests' support

import fuzzing

sys.path.insert(
    0, str(Path(__file__).resolve().parents[1] / "unit/server/content")
)  # the archive that the tests mutate

from test_page_har import whole

from tandem_server.content.page_recording import HarError, read_har


def mutated(chance: random.Random) -> bytes:
    """An archive with up to five values replaced and, half of the time, up to six bytes."""
    raw = bytearray(json.dumps(fuzzing.changed(chance, whole(), chance.randint(1, 5))).encode())
    for _ in range(chance.choice((0, chance.randint(1, 6)))):
        raw[chance.randrange(len(raw))] = chance.randrange(256)
    return bytes(raw)


if __name__ == "__main__":
    sys.exit(fuzzing.documents(__doc__, mutated, read_har, HarError))
