"""Captures at both ends of downloads, page loads and uploads over two links of which one loses: the real endpoint's and the probe's, both
by the real tcpdump, with whose own reading the shares are compared."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support.emulated_links import RadioPair, find_link, radio_pair
from support.experiment_process import Run, parameters
from support.experiment_process import run as run_experiment
from support.standalone_endpoint import MEASUREMENT_PORT, SOURCES, lone_endpoint
from support.two_paths import SERVER, why_not
from tandem.capture import Budget, Capture, stop_all
from tandem_server.analysis.evaluate import Evaluation, evaluate
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
        wanted = parameters({**self.server, "capture": True}, **{"kind": "mptcp", "path": "b", **more, "run": run})
        return Run("download", wanted, self.pair.probe.enter)

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
        pair.tell("b", "down loss 0.05", "up loss 0.05")
        yield Rig(pair, server, folder)


def payload(*captures: Path, up: bool = False) -> Counter[tuple[str, str]]:
    """TCP payload from the server (or to it) by the probe's address and port, every copy, as tcpdump reads it."""
    found: Counter[tuple[str, str]] = Counter()
    for file in captures:
        read = ["tcpdump", "-r", str(file), "-nn", "tcp"]
        text = subprocess.run(read, capture_output=True, text=True, check=True).stdout
        for source, port, to, to_port, length in DATA.findall(text):
            ends = (source, port), (to, to_port)
            if ends[up] == (SERVER, str(MEASUREMENT_PORT)):
                found[ends[not up]] += int(length)
    return found


def captured(rig: Rig, own: Path, run: str) -> list[Capture]:
    """The probe's captures of a run, under way."""
    (own / "captures").mkdir(parents=True)
    captures = [Capture(f"tmp5-{n}", own / f"captures/{run}-{n}.pcap", 128, Budget(10**8)) for n in "ab"]
    rig.pair.probe.inside(lambda: [one.start(120) for one in captures])
    return captures


def evaluated(folder: Path, told: dict[str, Any], ours: Sequence[Any] = ()) -> Evaluation:
    """The one run of a campaign as a server exports it, with its captures analysed. ``ours``: the probe's own, ended."""
    own = folder / "probe/probe-1"
    files = [
        {"name": str(one.file.relative_to(own)), "bytes": one.bytes, "sha256": one.sha256, "packets": one.packets}
        for one in ours
    ]
    (own / "runs").mkdir(parents=True, exist_ok=True)
    made = {
        "format": "tandem-run/1",
        "id": RUN,
        "kind": "any",
        "pair": "pair-1",
        "pairing": "single",
        "files": files,
        "environment": {"path_addresses": {path: address for address, path in BY_ADDRESS.items()}},
        **told,
    }
    (own / f"runs/{RUN}.json").write_text(json.dumps(made))
    campaign = {"format": "tandem-campaign/1", "probe": "probe-1", "export": {"name": "x"}, "traces": True}
    (folder / "campaign.json").write_text(json.dumps(campaign))
    assert main(["analyse", str(folder / "probe"), "--out", str(folder / "traces")]) == 0
    return evaluate(load(folder), "no database", "no ledger")


def test_what_was_lost_on_the_way_is_in_the_senders_capture_and_in_its_shares(rig: Rig, tmp_path: Path) -> None:
    own = tmp_path / "probe/probe-1"
    captures = captured(rig, own, RUN)
    (own / "captures/server").mkdir()
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

    told = {
        "experiment": {"name": "download"},
        "kind": "mptcp",
        "paths": ["b", "a"],
        "parameters": {"path": "b", "bytes": SIZE},
    }
    told |= {"result": line["result"], "server_captures": line["server_captures"]}
    found = evaluated(tmp_path, told, ours)
    (facts,) = found.results.runs
    assert facts.result[SENDER_SHARES] == pytest.approx(
        {path: sent[end] / sent.total() for path, end in by_path.items()}
    )
    assert not any("captures" in line for line in found.missing)


def test_each_load_of_a_page_has_the_shares_of_its_own_session(rig: Rig, tmp_path: Path) -> None:
    build = [
        "page",
        "build",
        "--name",
        "plain",
        "--scheme",
        "http",
        "--objects",
        "8",
        "--bytes",
        "600000",
        "--origins",
        "2",
    ]
    argv = [sys.executable, "-m", "tandem_server", *build, "--config", str(rig.folder / "server.toml")]
    subprocess.run(argv, check=True, capture_output=True, env={**os.environ, "PYTHONPATH": SOURCES}, timeout=240)
    server = {**rig.server, "capture": True}
    wanted = {"run": RUN, "kind": "mptcp", "path": "a", "pages": "plain", "browser": "none", "repetitions": 2}
    line = run_experiment(rig.pair, "pageload", parameters(server, **wanted))
    assert line["failure"] is None
    own = tmp_path / "probe/probe-1"
    (own / "captures/server").mkdir(parents=True)
    expected = {}
    for entry in line["server_captures"]:
        (row,) = [one for one in rig.kept(RUN) if one.name == entry["name"]]
        shutil.copy(rig.folder / "traces" / row.place, own / entry["name"])
        sent = payload(own / entry["name"])
        by_path = {path: sum(n for end, n in sent.items() if BY_ADDRESS[end[0]] == path) for path in "ab"}
        expected[entry["session"]] = {path: n / sent.total() for path, n in by_path.items() if n}
    run = {"experiment": {"name": "pageload"}, "paths": ["a", "b"], "parameters": {"kind": "mptcp", "path": "a"}}
    found = evaluated(tmp_path, run | {"result": line["result"], "server_captures": line["server_captures"]})
    (facts,) = found.results.runs
    assert len(expected) == 2
    assert {session: pytest.approx(shares) for session, shares in expected.items()} == facts.result[SENDER_SHARES]
    assert [row["session"] in expected for row in facts.listed("loads")] == [True, True]


def test_an_upload_has_the_shares_of_the_probes_own_captures(rig: Rig, tmp_path: Path) -> None:
    own = tmp_path / "probe/probe-1"
    captures = captured(rig, own, RUN)
    wanted = parameters(rig.server, run=RUN, mode="oneway", seconds=1.5, primary="b")
    line = run_experiment(rig.pair, "bandwidth", wanted)
    ours = stop_all(captures)
    assert line["failure"] is None
    (told,) = line["result"]["rounds"]
    (benefit,) = told["benefits"]
    # Which ports were the Multipath TCP connection's, as the server saw them; nothing here translates addresses.
    (mptcp,) = [c for phase in told["phases"] for c in phase["connections"] if phase["name"] == "mptcp b"]
    ends = {(f["remote"]["address"], str(f["remote"]["port"])) for f in mptcp["sender"]["subflows"]}
    sent = {end: n for end, n in payload(*(one.file for one in ours), up=True).items() if end in ends}
    assert {BY_ADDRESS[address] for address, _ in sent} == {"a", "b"}
    expected = {BY_ADDRESS[end[0]]: n / sum(sent.values()) for end, n in sent.items()}
    run = {"experiment": {"name": "bandwidth"}, "paths": ["a", "b"], "parameters": {"mode": "oneway"}}
    found = evaluated(tmp_path, {**run, "result": line["result"]}, ours)
    (facts,) = found.results.runs
    assert facts.result[SENDER_SHARES] == {benefit["token"]: pytest.approx(expected)}
    assert expected["b"] > benefit["shares"]["b"]  # what path b lost was sent again
