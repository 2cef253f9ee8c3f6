"""Do transfers over a replayed recording take as long as over the link that was recorded, when its delivery depends on load?

    ./kit run python tests/bench/bench_delivery.py [--seconds 60] [--rounds 40] [--quick] [--json]

Root; namespaces of its own, the real endpoint. A hidden link (tests/support/recorded_delivery.py) is recorded with two paths by the example
experiment delivery, and its traces are made as a person makes them. The same downloads, of sizes from an object of a page to a segment
of video, are then made over the hidden link, over the replay by load, and over a replay of the heavy trace alone, one after the other.
Prints seconds of all downloads of a class of sizes, and how far the replays are off. Asserts nothing.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the tests' support

from support.recorded_delivery import experiment, hidden, link, recorded, traces

CLASSES = (("objects of pages", 0, 150_000), ("segments of video", 150_000, 10**9))


def seconds_by_class(options: list[str], rounds: int) -> dict[str, float]:
    """Of all TCP downloads, path by path in turn; the seed draws the same sizes each time."""
    asked = {"mode": "reqresp", "min_bytes": 10_000, "max_bytes": 2_000_000, "repetitions": rounds, "primary": "a"}
    line = experiment(options, "delay", seed=1, whoami=False, **asked)
    if line["failure"] is not None:
        raise SystemExit(f"delay: {line['failure']['reason']}")
    out = {name: 0.0 for name, *_ in CLASSES}
    for made in line["result"]["rounds"]:
        name = next(name for name, least, most in CLASSES if least <= made["bytes"] < most)
        taken = [t["agent_s"] for t in made["transfers"] if t["name"].startswith("tcp ")]
        if None in taken:
            raise SystemExit(f"a download of {made['bytes']} bytes failed: nothing to compare")
        out[name] += sum(taken)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="of the recording")
    parser.add_argument("--rounds", type=int, default=40, help="sizes")
    parser.add_argument("--quick", action="store_true", help="a short form, to see that it works: no figures to go by")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    seconds, rounds = (6.0, 4) if args.quick else (args.seconds, args.rounds)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        options = hidden(folder)
        manifest = recorded(options, folder, seconds)
        rtt_ms = json.loads(manifest.read_text())["result"]["light"]["rtt_ms"]
        loaded, light = traces(manifest, folder)
        arms = {"hidden": options, "by load": link(loaded, light, rtt_ms), "heavy alone": link(loaded, None, rtt_ms)}
        found = {arm: seconds_by_class(offers, rounds) for arm, offers in arms.items()}
    rows: list[dict[str, Any]] = [
        {"class": name, **{arm: round(found[arm][name], 3) for arm in arms}}
        | {f"{arm}, off": round(found[arm][name] / found["hidden"][name] - 1, 4) for arm in ("by load", "heavy alone")}
        for name, *_ in CLASSES
        if found["hidden"][name]
    ]
    if args.json:
        print(json.dumps(rows, indent=1))
        return
    for row in rows:
        print(", ".join(f"{key}: {value}" for key, value in row.items()))


if __name__ == "__main__":
    main()
