"""Page load time over the bench's links: TCP over each path and Multipath TCP, browser and object graph; and the relay's cost.

    PYTHONPATH=collector/src:server/src:firmware/bench/src python tests/bench/bench_pageload.py --link PATH/TO/tandem-link
        [--mbit 8] [--repetitions 10] [--objects 70] [--bytes 2000000] [--figure FILE.svg]
        [--no-links]

Root; namespaces of its own; a Chromium. Two links of 8 Mbit/s, 40 and 60 ms. Prints one JSON object an arm. The relay's cost is measured on
loopback, where nothing hides it: the same page from the same server process, straight and through the relay, in turn.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lab"))  # the lab's namespaces

from bench_download_cpu import link
from lone_endpoint import SOURCES, lone_endpoint
from page_request import loopback
from two_paths import SERVER, Space, await_true

from tandem.devtools.browser import Browser, find
from tandem.experiment.pageload import browser_load
from tandem.experiment.pageload.carrier import Carrier
from tandem.experiment.pageload.page import StoredPage
from tandem.experiment.pageload.page import read as read_page
from tandem.experiment.pageload.relay import Relay, asking, connected
from tandem.mptcp.paths import Path as ProbePath
from tandem.mptcp.paths import Paths
from tandem_server.content.page import synthetic
from tandem_server.content.page.index import public
from tandem_server.content.page.shelf import Captured, Shelf, write

SMALL = "http://www.page-1.test/small"
ARMS = (("tcp", "a"), ("tcp", "b"), ("mptcp", "a"), ("mptcp", "b"))
Loads = dict[tuple[str, str, str], list[float]]


def one_load(program: str, page: StoredPage, flags: list[str]) -> float:
    """A fresh browser's page load time in ms."""
    browser = Browser(program, flags)
    try:
        session = browser.page(time.monotonic() + 60)
        found = browser_load.load(browser, session, page, time.monotonic() + 60, lambda: False, lambda: None)
    finally:
        browser.close()
    assert found.load_ms is not None, found.failure
    assert found.failed == found.missed == 0, found
    return found.load_ms


def relay_cost(program: str, args: argparse.Namespace) -> dict[str, Any]:
    """Straight (names mapped to the port) and through the relay, in turn, over loopback: page loads, and requests of a small object."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (folder / "page").mkdir()
        objects = synthetic.make(1, args.objects, args.bytes, 6, "http")
        write(folder / "page", [*objects, Captured("GET", SMALL, 200, (), b"x" * 100)], {}, {})
        opened = Shelf(folder).open("page")
        assert opened is not None
        page = read_page("page", {**public(opened.page), "tls": None})
        origins = [sys.executable, str(Path(__file__).with_name("page_origins.py")), str(folder)]
        server = stack.enter_context(
            subprocess.Popen(origins, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        )
        assert server.stdin is not None
        assert server.stdout is not None
        stack.callback(server.stdin.close)
        port = int(server.stdout.readline())
        loads: dict[str, list[float]] = {"straight": [], "relayed": []}
        asked: dict[str, list[float]] = {"straight": [], "relayed": []}
        for _ in range(args.repetitions):
            mapped = [f"--host-resolver-rules=MAP * 127.0.0.1:{port}"]
            loads["straight"].append(one_load(program, page, mapped))
            carrier = Carrier(*loopback(folder, port), "page")
            relay = Relay(carrier, page.origins, time.monotonic() + 120)
            try:
                loads["relayed"].append(one_load(program, page, browser_load.flags(page, relay.port)))
                for _ in range(5):
                    asked["straight"] += requests(port, relayed=False)
                    asked["relayed"] += requests(relay.port, relayed=True)
            finally:
                relay.close()
                carrier.close()
    return {
        "page_load_ms": {way: {"median": statistics.median(ms), "least": min(ms)} for way, ms in loads.items()},
        "request_ms": {way: {"median": round(statistics.median(ms), 4)} for way, ms in asked.items()},
        "requests": len(asked["relayed"]),
    }


def requests(port: int, *, relayed: bool) -> list[float]:
    """Two hundred times a small object over one connection; how long each took, in ms."""
    took = []
    host = SMALL.split("/")[2]
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if relayed:
            client.sendall(asking(host, 80))
            assert connected(client)
        for _ in range(200):
            begun = time.perf_counter()
            client.sendall(f"GET /small HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            got = b""
            while not got.endswith(b"x" * 100):
                got += client.recv(4096)
            took.append(1000 * (time.perf_counter() - begun))
    return took


def over_links(args: argparse.Namespace) -> Loads:
    """Every arm in turn, as often as asked, by browser and by graph."""
    loads: Loads = {}
    with ExitStack() as stack:
        probe, server = Space(), Space()
        stack.callback(server.close)
        stack.callback(probe.close)
        server.run(f"ip addr add {SERVER}/32 dev lo")
        for number, name in enumerate("ab", start=1):
            process = link(args.link, probe, server, name, number, args.mbit)
            stack.callback(process.communicate)
            stack.callback(process.terminate)
        server.run("sysctl -qw net.ipv4.tcp_congestion_control=reno")  # a namespace of this kernel takes no cubic
        paths = Paths([ProbePath(n, f"tmp5-{n}") for n in "ab"])
        probe.inside(paths.apply)
        await_true(lambda: probe.inside(paths.check) is not None and len(paths.addresses) == 2, 5, "both paths up")
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        told = stack.enter_context(lone_endpoint(server, SERVER, folder))
        build = ["page", "build", "--objects", str(args.objects), "--bytes", str(args.bytes), "--scheme", args.scheme]
        argv = [sys.executable, "-m", "tandem_server", *build, "--config", str(folder / "server.toml")]
        subprocess.run(argv, check=True, capture_output=True, env={**os.environ, "PYTHONPATH": SOURCES})
        for _ in range(args.repetitions):
            for kind, path in ARMS:
                for row in run(probe, told, kind, path):
                    assert row["failure"] is None, row
                    ms = row["page_load_time_ms"] if row["by"] == "browser" else row["object_load_time_ms"]
                    loads.setdefault((kind, path, row["by"]), []).append(ms)
                    print(json.dumps({"kind": kind, "path": path, **row}), file=sys.stderr, flush=True)
    return loads


def run(probe: Space, server: dict[str, Any], kind: str, path: str) -> list[dict[str, Any]]:
    """The rows of one run: a load by the browser, one by the graph."""
    parameters = {
        "run": "bench",
        "kind": kind,
        "path": path,
        "paths": [{"name": n, "interface": f"tmp5-{n}"} for n in "ab"],
        "browser": "both",
        "server": server,
    }
    done = subprocess.run(
        [*probe.enter, sys.executable, "-m", "tandem.experiment.pageload"],
        input=json.dumps(parameters),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ},
    )
    last = json.loads(done.stdout.splitlines()[-1])
    assert last["result"] is not None, last
    rows: list[dict[str, Any]] = last["result"]["loads"]
    return rows


def figure(loads: Loads, file: Path) -> None:
    """Cumulative distributions: page load time by arm, and beside it both measures of the same page."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot as plt

    drawn, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True)
    for (kind, path, by), values in loads.items():
        ordered = [v / 1000 for v in sorted(values)]
        heights = [(n + 1) / len(ordered) for n in range(len(ordered))]
        name = f"{kind.upper()}, {path} {'first' if kind == 'mptcp' else ''}".strip()
        if by == "browser":
            axes[0].step(ordered, heights, where="post", label=name)
        if (kind, path) in (("tcp", "a"), ("mptcp", "a")):
            label = f"{kind.upper()}, {'page load' if by == 'browser' else 'object load'}"
            axes[1].step(ordered, heights, where="post", label=label, linestyle="-" if by == "browser" else "--")
    for axis, title in zip(axes, ("Page load time", "Page load time and object load time"), strict=True):
        axis.set_title(title)
        axis.set_xlabel("s")
        axis.set_ylim(0, 1)
        axis.set_xlim(left=0)
        axis.legend(loc="lower right", fontsize=7)
    axes[0].set_ylabel("share of loads")
    drawn.tight_layout()
    drawn.savefig(file)


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--link", required=True, help="the binary tandem-link")
    parser.add_argument("--mbit", type=float, default=8.0, help="of each link")
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--objects", type=int, default=70)
    parser.add_argument("--bytes", type=int, default=2_000_000)
    parser.add_argument("--scheme", choices=("http", "https"), default="https")
    parser.add_argument("--figure", type=Path, metavar="FILE.svg")
    parser.add_argument("--no-links", action="store_true", help="the relay's cost alone")
    args = parser.parse_args()
    program = find()
    if program is None:
        print("no Chromium here; mend: install chromium-headless-shell, or set TANDEM_CHROMIUM", file=sys.stderr)
        return 3
    print(json.dumps({"load_average": os.getloadavg()[0], "relay": relay_cost(program, args)}), flush=True)
    if args.no_links:
        return 0
    loads = over_links(args)
    for (kind, path, by), values in loads.items():
        row = {"kind": kind, "path": path, "by": by, "median_ms": statistics.median(values), "loads_ms": sorted(values)}
        print(json.dumps(row), flush=True)
    if args.figure is not None:
        figure(loads, args.figure)
    return 0


if __name__ == "__main__":
    sys.exit(main())
