"""Captures at both ends of a download over two links of which one loses: the real endpoint's and the probe's, both by the real tcpdump."""

import hashlib
import json
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from lone_endpoint import MEASUREMENT_PORT, lone_endpoint
from radio_pair import PATHS, RadioPair, find_link, radio_pair
from run_download import Run
from two_paths import SERVER, await_true, why_not

from tandem.capture import Budget, Capture, stop_all
from tandem_server.analysis.evaluate import evaluate
from tandem_server.analysis.folder import load
from tandem_server.analysis.tables.facts import SENDER_SHARES
from tandem_server.cli.main import main
from tandem_server.registry import Registry

LACK = why_not() or (None if find_link() and shutil.which("tcpdump") else "tandem-link and tcpdump are needed")
pytestmark = [pytest.mark.lab, pytest.mark.skipif(LACK is not None, reason=str(LACK))]
RUN, SIZE = "run-0123456789ab", 2_000_000
BY_ADDRESS = {"10.71.1.1": "a", "10.71.2.1": "b"}
DATA = re.compile(r"IP ([\d.]+)\.(\d+) > ([\d.]+)\.(\d+): .* length (\d+)")


@dataclass
class Rig:
    pair: RadioPair
    server: dict[str, Any]
    folder: Path

    def download(self, run: str, **more: Any) -> Run:
        asked = {"run": run, "kind": "mptcp", "path": "b", "paths": PATHS, "server": {**self.server, "capture": True}}
        return Run({**asked, **more}, self.pair.probe.enter)

    def kept(self, run: str) -> list[Any]:
        with Registry(self.folder / "registry.sqlite", read_only=True) as registry:
            return registry.traces.received("probe-1", run)


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    folder = tmp_path_factory.mktemp("endpoint")
    more = "[capture]\nallowed = true\n[limits]\nsession_idle_s = 10\n[traces]\nreserve_bytes = 0\n"
    with (
        radio_pair({"a": 8e6, "b": 8e6}, {"a": 40.0, "b": 40.0}) as pair,
        lone_endpoint(pair.server, SERVER, folder, more=more) as server,
    ):
        pair.tell("b", "down loss 0.05")
        yield Rig(pair, server, folder)


def payload(*captures: Path) -> Counter[tuple[str, str]]:
    """TCP payload from the server by the probe's address and port, every copy, as tcpdump reads it."""
    found: Counter[tuple[str, str]] = Counter()
    for file in captures:
        read = ["tcpdump", "-r", str(file), "-nn", "tcp"]
        text = subprocess.run(read, capture_output=True, text=True, check=True).stdout
        for source, port, to, to_port, length in DATA.findall(text):
            if (source, port) == (SERVER, str(MEASUREMENT_PORT)):
                found[to, to_port] += int(length)
    return found


def test_what_was_lost_on_the_way_is_in_the_senders_capture_and_in_its_shares(rig: Rig, tmp_path: Path) -> None:
    own, budget = tmp_path / "probe/probe-1", Budget(10**8)
    (own / "captures/server").mkdir(parents=True)
    (own / "runs").mkdir()
    captures = [Capture(f"tmp5-{n}", own / f"captures/{RUN}-{n}.pcap", 128, budget) for n in "ab"]
    rig.pair.probe.inside(lambda: [one.start(60) for one in captures])
    run = rig.download(RUN, bytes=SIZE)
    line = run.end()
    ours = stop_all(captures)
    assert (line["failure"], line["result"]["bytes"], line["result"]["fallback"]) == (None, SIZE, False)

    (entry,), (row,) = line["server_captures"], rig.kept(RUN)
    assert (entry["name"], entry["sha256"], entry["why"]) == (row.name, row.sha256, None)
    assert (entry["truncated"], entry["packets_dropped"], row.run) == (False, 0, RUN)
    stored = rig.folder / "traces" / row.place
    assert hashlib.sha256(stored.read_bytes()).hexdigest() == row.sha256
    shutil.copy(stored, own / row.name)

    sent, came = payload(own / row.name), payload(*(one.file for one in ours))
    by_path = {BY_ADDRESS[end[0]]: end for end in sent}
    a, b = by_path["a"], by_path["b"]
    assert set(sent) == {a, b}  # the probe's have whoami's connections too
    assert sent[b] > came[b]  # the link loses behind the server's tcpdump
    assert sent[a] >= came[a]
    assert came[a] + came[b] >= SIZE

    files = [
        {"name": str(one.file.relative_to(own)), "bytes": one.bytes, "sha256": one.sha256, "packets": one.packets}
        for one in ours
    ]
    told = {"format": "tandem-run/1", "id": RUN, "kind": "mptcp", "pair": "pair-1", "pairing": "single", "files": files}
    told |= {"experiment": {"name": "download"}, "paths": ["b", "a"], "parameters": {"path": "b", "bytes": SIZE}}
    told |= {"result": line["result"], "server_captures": line["server_captures"]}
    (own / f"runs/{RUN}.json").write_text(json.dumps(told))
    campaign = {"format": "tandem-campaign/1", "probe": "probe-1", "export": {"name": "x"}, "traces": True}
    (tmp_path / "campaign.json").write_text(json.dumps(campaign))
    assert main(["analyse", str(tmp_path / "probe"), "--out", str(tmp_path / "traces")]) == 0
    found = evaluate(load(tmp_path), "no database", "no ledger")
    (facts,) = found.results.runs
    assert facts.result[SENDER_SHARES] == pytest.approx(
        {path: sent[end] / sent.total() for path, end in by_path.items()}
    )
    assert not any("captures" in line for line in found.missing)


def test_the_capture_of_a_run_that_was_killed_is_kept_when_its_session_lapses(rig: Rig) -> None:
    run = rig.download("run-killed", seconds=60)
    run.until(lambda sample: sample["connection"]["bytes"] > 100_000)
    run.process.kill()
    run.process.communicate()
    await_true(lambda: rig.kept("run-killed"), 120, "the session has lapsed, its capture is kept")
    (row,) = rig.kept("run-killed")
    assert row.name.startswith("captures/server/run-killed-")
    assert sum(payload(rig.folder / "traces" / row.place).values()) > 100_000
