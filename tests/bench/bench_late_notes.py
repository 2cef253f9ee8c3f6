"""What it costs the gateway to find the hours of late lines: beside checking the lines, of a backlog and of fresh ones, in one run.

``python tests/bench/bench_late_notes.py [--lines 1000] [--rounds 200]``: lines as the exporter spells them, over four hours.
"""

import argparse
import time

from tandem_server.ingest.known_lines import KnownHeads
from tandem_server.ingest.late_notes import late_hours
from tandem_server.ingest.lines import TimeWindow, sift

S = 10**9


def lines(count: int, end_ns: int, span_s: int) -> list[str]:
    out = []
    for n in range(count):
        path = "ab"[n % 2]
        out.append(
            f"radio,boot=5f0c1c5e-0000-4000-8000-000000000001,driver=quectel,operator=alpha,path={path},probe=probe-1,rat=lte "
            f'band=3i,eci=26385408i,monotonic_ns={n + 5}i,rsrp_dbm=-{80 + n % 30}.0,rsrq_db=-9.0,seq={n + 1}i,sinr_db=11.0,state="idle" '
            f"{end_ns - span_s * S * (count - n) // count}"
        )
    return out


def best(what, rounds: int) -> float:
    taken = []
    for _ in range(rounds):
        began = time.perf_counter()
        what()
        taken.append(time.perf_counter() - began)
    return min(taken)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=200)
    args = parser.parse_args()
    now_ns, heads = time.time_ns(), KnownHeads()
    window = TimeWindow.at(now_ns, 600, None)
    for name, end_ns, span_s in (("fresh", now_ns, 60), ("backlog", now_ns - 3600 * S, 4 * 3600)):
        text = "\n".join(lines(args.lines, end_ns, span_s))
        stored = sift(text, "probe-1", window, heads).lines
        assert len(stored) == args.lines
        checked_s = best(lambda text=text: sift(text, "probe-1", window, heads), args.rounds)
        noted_s = best(lambda stored=stored: late_hours("probe-1", stored, now_ns), args.rounds)
        hours = len(late_hours("probe-1", stored, now_ns))
        print(
            f"{name:<8} checked {1e9 * checked_s / args.lines:6.0f} ns a line, noted {1e9 * noted_s / args.lines:6.1f} ns:"
            f" {noted_s / checked_s:.3f} of it, {hours} hours"
        )


if __name__ == "__main__":
    main()
