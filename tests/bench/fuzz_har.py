"""Mutated HTTP archives, by value and by byte: each is a page or one error, in bounded time.

./kit run python tests/bench/fuzz_har.py [--seconds 60] [--seed 1]
"""

from __future__ import annotations

import copy
import json
import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "unit/page"))  # the archive that the tests mutate

import fuzzing
from test_page_har import JUNK, PLACES, whole

from tandem_server.content.page import har


def mutated(chance: random.Random) -> bytes:
    """An archive with up to five values replaced and, half of the time, up to six bytes."""
    told = copy.deepcopy(whole())
    for _ in range(chance.randint(1, 5)):
        path = chance.choice(PLACES)
        at = told
        try:
            for key in path[:-1]:
                at = at[key]
            at[path[-1]] = copy.deepcopy(chance.choice(JUNK))
        except (KeyError, IndexError, TypeError):
            continue  # an earlier change took this place away
    raw = bytearray(json.dumps(told).encode())
    for _ in range(chance.choice((0, chance.randint(1, 6)))):
        raw[chance.randrange(len(raw))] = chance.randrange(256)
    return bytes(raw)


def main() -> int:
    """See the module."""
    args = fuzzing.parser(__doc__).parse_args()
    chance = random.Random(args.seed)
    size = pages = 0
    slowest_s = 0.0
    for count in fuzzing.rounds(args.seconds):  # noqa: B007  told at the end
        raw = mutated(chance)
        begun_s = time.perf_counter()
        try:
            har.read(raw)
            pages += 1
        except har.HarError as error:
            if "\n" in str(error):
                print(f"more than one line: {error!r} of {raw!r}")
                return 1
        slowest_s = max(slowest_s, time.perf_counter() - begun_s)
        size += len(raw)
    print(
        f"seed {args.seed}: {count + 1} archives, {size} bytes: {pages} pages, the others one error; the slowest {slowest_s:.3f} s"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
