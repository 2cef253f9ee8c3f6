"""Do transfers, page loads and video over a replayed recording go as over the link that was recorded, when its delivery depends on load?

    ./kit run python tests/bench/bench_delivery.py [--seconds 60] [--rounds 40] [--quick] [--json]

Root; namespaces of its own, the real endpoint. A hidden link (tests/support/recorded_delivery.py) is recorded with two paths by the example
experiment delivery, and its traces are made as a person makes them. The same downloads, loads of a stored page (by its object graph, and
in Chromium where there is one) and DASH with segments of a second are then made by TCP over the hidden link, over the replay by load, and
over a replay of the heavy trace alone, one after the other. Prints each figure, and how far the replays are off. Asserts nothing. By
default it takes about a quarter of an hour.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the tests' support

import benching
from benching import say

from support.emulated_links import RadioPair, offered_pair
from support.experiment_process import parameters, run
from support.recorded_delivery import hidden, link, recorded, traces
from support.standalone_endpoint import SOURCES
from tandem.devtools import find

CLASSES = (("downloads up to 150 kB, s", 0, 150_000), ("larger downloads, s", 150_000, 10**9))
CONTENT = (
    ("page", "build", "--name", "page", "--scheme", "http", "--objects", "40", "--bytes", "1500000"),
    ("dash", "build", "--segments", "1", "--seconds", "300"),
)
VIDEO = {"content": "synthetic", "mpd": "1s-number.mpd", "abr": "throughput"}


def build(server: dict[str, Any]) -> None:
    """Page and video, the same by their seeds each time, into the content folder of the endpoint."""
    folder = Path(server["token_file"]).parent
    for words in CONTENT:
        argv = [sys.executable, "-m", "tandem_server", *words, "--config", str(folder / "server.toml")]
        subprocess.run(argv, check=True, capture_output=True, env={**os.environ, "PYTHONPATH": SOURCES})


def result(pair: RadioPair, server: dict[str, Any], name: str, **own: Any) -> dict[str, Any]:
    """Of one run by TCP over path a."""
    line = run(pair, name, parameters(server, **own), 3600)
    if line["failure"] is not None:
        raise SystemExit(f"{name}: {line['failure']['reason']}")
    found: dict[str, Any] = line["result"]
    return found


def figures(arm: str, options: list[str], rounds: int) -> dict[str, float]:
    """Over two such links; says what of the ``arm`` begins. The seed draws the same sizes each time; downloads go path by path in turn."""
    out = {name: 0.0 for name, *_ in CLASSES}
    with offered_pair({"a": options, "b": options}) as (pair, server):
        build(server)
        say(f"{arm}: {rounds} downloads")
        sizes = {"mode": "reqresp", "min_bytes": 10_000, "max_bytes": 2_000_000, "repetitions": rounds}
        for made in result(pair, server, "delay", seed=1, whoami=False, primary="a", **sizes)["rounds"]:
            name = next(name for name, least, most in CLASSES if least <= made["bytes"] < most)
            taken = [t["agent_s"] for t in made["transfers"] if t["name"].startswith("tcp ")]
            if None in taken:
                raise SystemExit(f"a download of {made['bytes']} bytes failed: nothing to compare")
            out[name] += sum(taken)
        browser = "none" if find() is None else "both"
        say(f"{arm}: {rounds // 2} page loads")
        asked = {"kind": "tcp", "path": "a", "pages": "page", "browser": browser}
        loads = result(pair, server, "pageload", **asked, repetitions=rounds // 2)
        for name in ("object_load_time_ms", "page_load_time_ms"):
            if (loads[name] or {}).get("n"):
                out[f"{name}, mean"] = loads[name]["mean"]
        say(f"{arm}: {3 * rounds} s of video")
        play = result(pair, server, "dash", kind="tcp", path="a", player="own", seconds=3 * rounds, **VIDEO)
        out["video: bitrate, Mbit/s"] = play["bitrate_bit_per_s"] / 1e6
        out["video: startup delay, ms"] = play["startup_delay_ms"]
        out["video: stalled, s"] = play["stalled_s"]
    return out


def main() -> None:
    parser = benching.parser(__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="of the recording")
    parser.add_argument("--rounds", type=int, default=40, help="sizes; half as many loads, thrice as many s of video")
    parser.add_argument("--quick", action="store_true", help="a short form, to see that it works: no figures to go by")
    args = parser.parse_args()
    seconds, rounds = (6.0, 4) if args.quick else (args.seconds, args.rounds)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        options = hidden(folder)
        say(f"recording for {seconds:g} s")
        manifest = recorded(options, folder, seconds)
        rtt_ms = json.loads(manifest.read_text())["result"]["light"]["rtt_ms"]
        loaded, light = traces(manifest, folder)
        arms = {"hidden": options, "by load": link(loaded, light, rtt_ms), "heavy alone": link(loaded, None, rtt_ms)}
        found = {arm: figures(arm, offers, rounds) for arm, offers in arms.items()}
    rows: list[dict[str, Any]] = [
        {"figure": name, **{arm: round(found[arm][name], 3) for arm in arms}}
        | {f"{arm}, off": round(found[arm][name] / true - 1, 4) for arm in ("by load", "heavy alone") if true}
        for name, true in found["hidden"].items()
    ]
    if args.json:
        print(json.dumps(rows, indent=1))
        return
    for row in rows:
        print(", ".join(f"{key}: {value}" for key, value in row.items()))


if __name__ == "__main__":
    main()
