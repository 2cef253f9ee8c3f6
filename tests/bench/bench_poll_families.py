"""Poll duration and cadence of every modem family, all polled at once by the collector's poller.

usage: bench_poll_families.py [--seconds N] [--answer-ms T] [--json]

Each family's first transcript is played on a pseudo-terminal or by a web server; each command takes ``--answer-ms``, as a quick
modem's would. So the duration shows how many exchanges a family needs and what the collector adds to them; lateness shows
whether seventeen modems at once still keep the second.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "contract"))

from transcript_modem import played  # noqa: E402  (found by the line above)

import tandem.modem  # noqa: E402
from tandem.modem.base import Identity  # noqa: E402
from tandem.modem.poll import Poll  # noqa: E402
from tandem.modem.poller import Poller  # noqa: E402
from tandem.modem.registry import drivers  # noqa: E402

MODEM = Path(tandem.modem.__file__).parent


def percentile(values: list[float], share: float) -> float:
    """The value that ``share`` of them do not exceed."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def row(family: str, commands: int, polls: list[Poll], answer_ms: float) -> dict[str, Any]:
    """One family's figures; ``added_ms``: its median duration less what its modem took."""
    lasted, late = [p.duration_ms for p in polls], [p.late_ms for p in polls]
    return {
        "family": family,
        "exchanges": commands,
        "polls": len(polls),
        "failed": sum(p.failure is not None for p in polls),
        "skipped": sum(p.skipped for p in polls),
        "duration_ms_median": round(statistics.median(lasted), 2),
        "duration_ms_p99": round(percentile(lasted, 0.99), 2),
        "added_ms": round(statistics.median(lasted) - commands * answer_ms, 2),
        "late_ms_median": round(statistics.median(late), 2),
        "late_ms_p99": round(percentile(late, 0.99), 2),
    }


def measure(seconds: float, answer_ms: float) -> list[dict[str, Any]]:
    """All families at once for ``seconds``."""
    heard: dict[str, list[Poll]] = {}
    commands: dict[str, int] = {}
    with ExitStack() as stack:
        for family, driver in drivers().items():
            content = json.loads(min((MODEM / family / "transcripts").glob("*.json")).read_text())
            where = stack.enter_context(played(content, driver.transport, answer_ms / 1000))
            heard[family], commands[family] = [], len(driver.poll_commands(Identity(**content["identity"])))
            poller = Poller(family, None, where, family, 1.0, heard[family].append)
            stack.callback(poller.stop, 10)
            poller.start()
        threading.Event().wait(seconds)
    return [row(family, commands[family], polls, answer_ms) for family, polls in heard.items() if polls]


def main() -> int:
    """Print the table, or with ``--json`` the object."""
    parser = argparse.ArgumentParser(description="Poll duration and cadence of every modem family.")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long; default: 60")
    parser.add_argument("--answer-ms", type=float, default=20.0, help="how long each command takes; default: 20")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    args = parser.parse_args()
    cpu = time.process_time()
    rows = measure(args.seconds, args.answer_ms)
    polls = sum(r["polls"] for r in rows)
    cpu_ms = (time.process_time() - cpu) * 1000 / max(1, polls)
    if args.json:
        print(
            json.dumps({"answer_ms": args.answer_ms, "cpu_ms_per_poll": round(cpu_ms, 2), "families": rows}, indent=1)
        )
        return 0
    names = list(rows[0])
    print("  ".join(f"{name:>18}" for name in names))
    for one in rows:
        print("  ".join(f"{one[name]!s:>18}" for name in names))
    print(f"\n{polls} polls, {cpu_ms:.2f} ms of processor time each, the played modems' share included")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
