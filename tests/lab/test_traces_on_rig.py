"""Files of runs go to the real server, over the bench's Wi-Fi: while it is cut, while chunks are corrupted, after kill -9."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import random
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.running_kit import REPOSITORY, RunningKit, awaited, running_kit
from tandem.app.daemon.status_socket import NoCollectorError, ask
from tandem_bench.run.programs import READY_S, Owner
from tandem_bench.topology.spec import SERVER_NAME

pytestmark = [pytest.mark.lab, pytest.mark.slow]

TRACES = '\n[traces]\nnight = "off"\nstill_for_s = 0\nkeep = "until_received"\nencoding = "{encoding}"\n'
PROXY_PORT = 9443
CAMPAIGN = """\
format = "tandem-campaign-file/1"
name = "captured"
title = "two runs with captures"
roles = ["a", "b"]
[[step]]
name = "s"
experiment = "download"
repetitions = 2
[step.parameters]
kind = "mptcp"
path = "a"
bytes = 3_000_000
"""


@pytest.fixture(scope="module")
def kit(influxd: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningKit]:
    with running_kit(tmp_path_factory.mktemp("rig"), influxd, more=TRACES.format(encoding="gzip")) as running:
        yield running


def traces(kit: RunningKit) -> dict[str, Any]:
    """What the collector says, when it is there to say it."""
    with contextlib.suppress(NoCollectorError):
        for told in ask(kit.probe / "status.sock", {"op": "traces", "action": "status"}, 10.0):
            return told
    return {"traces": {"waiting": None, "aside": None, "kept": None, "now": None, "said": None}}


def all_received(kit: RunningKit) -> bool:
    told = traces(kit)["traces"]
    return (told["waiting"], told["aside"], told["kept"]) == (0, 0, 0)


def at_the_server(kit: RunningKit) -> dict[str, Path]:
    """Files in the server's folder of traces, by the hash of what was deflated."""
    found = {}
    for file in (kit.folder / "server" / "traces").rglob("*"):
        if file.is_file():
            content = file.read_bytes()
            whole = gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
            found[hashlib.sha256(whole).hexdigest()] = file
    return found


def sent_over_wifi(kit: RunningKit) -> int:
    """Bytes as the kernel counts them on the interface, all headers included, Ethernet's too."""
    shown = json.loads(kit.run("probe", "ip", "-s", "-j", "link", "show", "wlan0"))
    return int(shown[0]["stats64"]["tx"]["bytes"])


def upload_bytes(kit: RunningKit) -> dict[str, int]:
    """By path, of uploads, in the database."""
    found = kit.query('SELECT max("upload_bytes") FROM "usage" GROUP BY "path"')
    return {series["tags"]["path"]: int(series["rows"][0][1]) for series in found}


def capture(kit: RunningKit, run: str, content: bytes) -> str:
    """A file as a run would have left it; its hash."""
    name, digest = f"captures/{run}-wifi.pcap", hashlib.sha256(content).hexdigest()
    (kit.probe / name).write_bytes(content)
    row = {"name": name, "bytes": len(content), "sha256": digest, "packets": None}
    manifest = {"format": "tandem-run/1", "id": run, "ended_utc_ns": 1, "files": [row]}
    (kit.probe / "runs" / f"{run}.json").write_text(json.dumps(manifest))
    for place in (kit.probe / name, kit.probe / "runs" / f"{run}.json"):
        Owner.of_caller().give(place)
    return digest


def test_a_campaigns_captures_go_up_over_wifi_and_then_go_here(
    kit: RunningKit, record_property: Callable[..., None]
) -> None:
    file = kit.folder / "captured.toml"
    file.write_text(CAMPAIGN)
    kit.tool("probe", "tandem", "campaign", "run", str(file), "--wait", *kit.probe_config)
    awaited("all captures are received", lambda: all_received(kit))
    promised = [row for run in (kit.probe / "runs").glob("*.json") for row in json.loads(run.read_text())["files"]]
    assert len(promised) == 4, "two runs over two paths"
    assert {row["sha256"] for row in promised} <= set(at_the_server(kit))
    assert list((kit.probe / "captures").iterdir()) == []
    for row in promised:
        receipt = json.loads((kit.probe / "receipts" / f"{row['name']}.json").read_text())
        assert (receipt["sha256"], receipt["bytes"]) == (row["sha256"], row["bytes"])
    used = awaited("usage is told", lambda: (found := upload_bytes(kit)).get("wifi", 0) > 0 and found)
    assert (used["a"], used["b"]) == (0, 0)
    whole = sum(row["bytes"] for row in promised)
    record_property("gzip", round(used["wifi"] / whole, 3))
    print(f"captures of {whole} bytes took {used['wifi']} of TCP's payload: {used['wifi'] / whole:.3f}")
    assert used["wifi"] < whole


@contextlib.contextmanager
def corrupted(kit: RunningKit, log: Path) -> Iterator[None]:
    """Uploads go through the proxy that corrupts one chunk in fifty."""
    tls, script = kit.folder / "server" / "tls", REPOSITORY / "tests/lab/corrupting_proxy.py"
    argv = [sys.executable, str(script), str(PROXY_PORT)]
    argv += [str(tls / name) for name in ("server.pem", "server.key", "ca.pem")] + [SERVER_NAME, "8443", str(log)]
    proxy = kit.programs.start("proxy", kit.rig.command("server", argv), READY_S)
    try:
        redirect = f"type nat hook prerouting priority -100; tcp dport 8443 redirect to :{PROXY_PORT};"
        with kit.ruled("server", f"chain in {{ {redirect} }}"):
            yield
    finally:
        kit.programs.end(proxy)


CHAIN = 'chain out {{ type filter hook output priority 0; oifname "wlan0" {}; }}'
SILENCE, RESET = CHAIN.format("drop"), CHAIN.format("meta l4proto tcp reject with tcp reset")
CUTS = (SILENCE, RESET, SILENCE, RESET)


def test_a_link_cut_four_times_that_corrupts_a_chunk_in_fifty(
    kit: RunningKit, tmp_path: Path, record_property: Callable[..., None]
) -> None:
    """Random bytes, so that deflating helps nothing."""
    content = random.Random(5).randbytes(40 * 256 * 1024)
    log = tmp_path / "corrupted"
    Owner.of_caller().give(tmp_path)
    with corrupted(kit, log):
        digest = capture(kit, "run-0000000000c5", content)
        kit.collector_cut()  # the queue is made anew from what lies on the disk
        before = sent_over_wifi(kit)
        for n, cut in enumerate(CUTS, 1):
            awaited("the next part is there", lambda n=n: offset(kit) > n * len(content) // 8)
            with kit.ruled("probe", cut):
                time.sleep(0.6)  # the cut's own length
        awaited("the file is received", lambda: all_received(kit), 220)
        on_wire, sent = sent_over_wifi(kit) - before, int(traces(kit)["traces"]["sent_bytes"]["wifi"])
    assert digest in at_the_server(kit)
    turned = len(log.read_text().splitlines())
    assert turned >= 1
    ratios = round(sent / len(content), 3), round(on_wire / len(content), 3)
    record_property("sent", ratios)
    print(
        f"{len(CUTS)} cuts, {turned} corrupted: TCP sent {ratios[0]} of the file, on the interface with all headers {ratios[1]}"
    )
    assert len(content) < sent <= 1.1 * len(content)
    assert not (kit.probe / "captures/run-0000000000c5-wifi.pcap").exists()


def test_killed_in_the_middle_and_kept_waiting_by_a_run(kit: RunningKit, record_property: Callable[..., None]) -> None:
    # Each of three breaks costs a chunk and what was under way: of a file of 16 MiB that is far from a tenth.
    content = random.Random(6).randbytes(64 * 256 * 1024)
    digest = capture(kit, "run-0000000000d6", content)
    kit.collector_cut()
    before = sent_over_wifi(kit)
    awaited("a quarter is there", lambda: offset(kit) > len(content) // 4)
    kit.collector_cut()
    awaited("it goes on", lambda: offset(kit) > len(content) // 4)
    # One that leaves small captures: they go up over the same Wi-Fi.
    request = {"parameters": {"seconds": 8, "load": "none"}, "paths": ["a"]}
    with kit.ruled("probe", SILENCE):  # or the file is there before the run has begun
        running = ask(kit.probe / "status.sock", {"op": "start", "experiment": "latency", "parameters": request}, 180.0)
        assert next(running)["type"] == "accepted"
    waiting = list[int]()
    for told in running:
        ended, now = told, traces(kit)["traces"]
        if told["type"] == "progress" and now["said"] == "waits: a run is under way":
            assert now["now"] is None
            waiting.append(sent_over_wifi(kit))
    assert (ended["type"], ended["ok"]) == ("done", True)
    assert len(waiting) >= 2
    # Breaking off takes up to half a second, and the first progress messages come one behind the other.
    assert waiting[-1] - waiting[max(1, len(waiting) // 4)] < 100_000, "nothing of the file goes"
    awaited("the file is received", lambda: all_received(kit), 220)
    assert digest in at_the_server(kit)
    sent = sent_over_wifi(kit) - before
    record_property("sent", round(sent / len(content), 3))
    print(f"killed once, broken off twice: sent {sent / len(content):.3f} of the file, all headers included")
    assert sent <= 1.1 * len(content)


def offset(kit: RunningKit) -> int:
    """How far the file is that goes up now."""
    return int((traces(kit)["traces"]["now"] or {}).get("offset") or 0)
