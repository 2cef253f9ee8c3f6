"""Fuzz the AT engine: mutated dialogues of all families and pure garbage.

usage: fuzz_at.py [--bytes N] [--seed S] [--json]

Half of the bytes go through splitter and dialogue, a quarter each through a channel over a socket pair and over a pseudo-terminal.
Exit status: 0 when every invariant held, 1 with the finding when one did not.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "unit" / "at"))

from at_fuzzing import WAYS, Source, Violation


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bytes", type=int, default=12_000_000, help="in all; default: %(default)s")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    rows: list[dict[str, object]] = []
    for (name, way), share in zip(WAYS.items(), (2, 4, 4), strict=True):
        rss_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        began = time.monotonic()
        try:
            counts = way(Source(args.seed), args.bytes // share)
        except Violation as found:
            print(f"{name}: {found}", file=sys.stderr)
            return 1
        seconds = time.monotonic() - began
        rows.append(
            {
                "way": name,
                "fed_bytes": counts.fed_bytes,
                "seconds": round(seconds, 1),
                "bytes_per_s": round(counts.fed_bytes / seconds),
                "rounds": counts.rounds,
                "responses": counts.responses,
                "unanswered": counts.unanswered,
                "longest_line": counts.longest_line,
                "rss_growth_kib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - rss_kib,
            }
        )
    if args.json:
        print(json.dumps(rows, indent=1))
    else:
        for row in rows:
            print("  ".join(f"{key} {value}" for key, value in row.items()))
        print(f"{sum(int(str(row['fed_bytes'])) for row in rows)} bytes, every invariant held")
    return 0


if __name__ == "__main__":
    sys.exit(main())
