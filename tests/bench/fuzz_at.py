"""The AT engine on mutated dialogues of all families and on pure garbage, in two ways: splitter and dialogue, and a channel over a
pseudo-terminal.

    ./kit run python tests/bench/fuzz_at.py [--seconds 60] [--seed 1]
"""

from __future__ import annotations

import resource
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the tests' support

import fuzzing

from support.at_fuzzing import WAYS, Source, Violation

EACH_BYTES = (200_000, 100_000)


def main() -> int:
    args = fuzzing.parser(__doc__).parse_args()
    done, longest = Counter[str](), 0
    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for number in fuzzing.rounds(args.seconds):
        for (name, way), count in zip(WAYS.items(), EACH_BYTES, strict=True):
            try:
                counts = way(Source(args.seed * 1_000_003 + number), count)
            except Violation as found:
                print(f"{name}, seed {args.seed}, round {number}: {found}")
                return 1
            done += Counter(bytes=counts.fed_bytes, responses=counts.responses, unanswered=counts.unanswered)
            longest = max(longest, counts.longest_line)
    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib
    answers = f"{done['responses']} responses, {done['unanswered']} unanswered, longest line {longest}"
    print(f"seed {args.seed}: {done['bytes']} bytes, {answers}, memory {grown_kib} KiB more; every invariant held")
    return 0


if __name__ == "__main__":
    sys.exit(main())
