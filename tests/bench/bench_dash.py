"""A play over emulated links that are throttled and then fall, against the real endpoint with synthetic content: what the player did.

    PYTHONPATH=collector/src:server/src python tests/bench/bench_dash.py --link PATH/TO/tandem-link --influxd PATH/TO/influxd
        [--seconds 80] [--fall 40] [--mbit 8 1.2] [--arms tcp:dynamic mptcp:dynamic …] [--segment 6] [--rows]

Root; namespaces of its own. Prints one JSON object an arm (and with --rows its segments); the links fall ``--fall`` seconds
after each play's first segment.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lab"))  # the lab's namespaces

from bench_download_cpu import link
from two_paths import SERVER, Space, await_true

from tandem.mptcp.paths import Path as ProbePath
from tandem.mptcp.paths import Paths

ARMS = ["tcp:dynamic", "mptcp:dynamic", "mptcp:bba", "mptcp:bola-e"]


def serve(stack: ExitStack, server: Space, folder: Path, influxd: str, seconds: int, segment: int) -> None:
    """The real endpoint inside ``server``, with content and one probe."""
    program = [*server.enter, sys.executable, "-m", "tandem_server"]
    config = ["--config", str(folder / "server.toml")]
    (folder / "server.toml").write_text(f'[store]\nbinary = "{influxd}"\n[listen]\nprocesses = 1\n')
    for once in (
        ["tls", "--folder", str(folder / "tls"), "--name", "server.tandem.test", "--address", SERVER],
        ["probe", "add", "bench", *config, "--token-file", str(folder / "token")],
        ["dash", "build", *config, "--seconds", str(seconds), "--segments", str(segment)],
    ):
        subprocess.run([*program, *once], check=True, capture_output=True)
    log = stack.enter_context((folder / "serve.log").open("w"))
    serving = subprocess.Popen([*program, "serve", *config], stdout=subprocess.PIPE, stderr=log, text=True)
    stack.callback(serving.communicate, timeout=30)
    stack.callback(serving.terminate)
    assert serving.stdout is not None
    for line in serving.stdout:
        if line.startswith("ready endpoint"):
            return
    raise RuntimeError((folder / "serve.log").read_text())


def play(
    probe: Space, folder: Path, links: list[subprocess.Popen[str]], kind: str, abr: str, args: argparse.Namespace
) -> dict[str, Any]:
    """One arm; its result line."""
    parameters = {
        "run": "bench",
        "kind": kind,
        "path": "a",
        "paths": [{"name": n, "interface": f"tmp5-{n}"} for n in "ab"],
        "mpd": f"{args.segment}s-number.mpd",
        "abr": abr,
        "server": {
            "control": f"https://{SERVER}:8444",
            "measurement": f"http://{SERVER}:8480",
            "token_file": str(folder / "token"),
            "ca_file": str(folder / "tls" / "ca.pem"),
        },
    }
    said(links, args.mbit[0])
    experiment = subprocess.Popen(
        [*probe.enter, sys.executable, "-m", "tandem.experiment.dash"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ},
    )
    assert experiment.stdin is not None
    assert experiment.stdout is not None
    experiment.stdin.write(json.dumps(parameters))
    experiment.stdin.close()
    fall_s: float | None = None
    last: dict[str, Any] = {}
    for text in experiment.stdout:
        last = json.loads(text)
        if last["type"] == "segment" and fall_s is None:
            fall_s = time.monotonic() + args.fall
        if fall_s is not None and time.monotonic() >= fall_s:  # samples come ten times a second
            said(links, args.mbit[1])
            fall_s = float("inf")
    experiment.wait()
    return last


def said(links: list[subprocess.Popen[str]], mbit: float) -> None:
    """Set the rate of both links, down."""
    for one in links:
        assert one.stdin is not None
        one.stdin.write(f"set down rate {int(mbit * 1e6)}\n")
        one.stdin.flush()


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--link", required=True, help="the binary tandem-link")
    parser.add_argument("--influxd", required=True, help="the binary influxd")
    parser.add_argument("--seconds", type=int, default=80, help="of video")
    parser.add_argument("--fall", type=float, default=40.0, help="when the links fall")
    parser.add_argument("--mbit", type=float, nargs=2, default=[8.0, 1.2], help="of each link, before and after")
    parser.add_argument("--arms", nargs="+", default=ARMS, metavar="KIND:ABR")
    parser.add_argument("--segment", type=int, default=6)
    parser.add_argument("--rows", action="store_true", help="print each segment too")
    args = parser.parse_args()
    with ExitStack() as stack:
        probe, server = Space(), Space()
        stack.callback(server.close)
        stack.callback(probe.close)
        server.run(f"ip addr add {SERVER}/32 dev lo")
        links = []
        for number, name in enumerate("ab", start=1):
            links.append(link(args.link, probe, server, name, number, args.mbit[0]))
            stack.callback(links[-1].communicate)
            stack.callback(links[-1].terminate)
        paths = Paths([ProbePath(n, f"tmp5-{n}") for n in "ab"])
        probe.inside(paths.apply)
        await_true(lambda: probe.inside(paths.check) is not None and len(paths.addresses) == 2, 5, "both paths up")
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        serve(stack, server, folder, args.influxd, args.seconds, args.segment)
        for arm in args.arms:
            kind, _, abr = arm.partition(":")
            line = play(probe, folder, links, kind, abr, args)
            result = line["result"] or {}
            if args.rows:
                for row in result.get("segments", []):
                    print(json.dumps(row))
            kept = {k: v for k, v in result.items() if k not in ("segments", "p1203", "sender")}
            print(json.dumps({"arm": arm, "failure": line["failure"], **kept}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
