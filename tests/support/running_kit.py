"""The real server and the real collector on the bench: two operators and a Wi-Fi, radio that stays as it is; the server
has two addresses and announces the second in its connections."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any, TypeVar

from tandem_bench.run import configuration
from tandem_bench.run.programs import COLLECTOR, READY_S, Owner, Program, Programs, confined
from tandem_bench.run.rig import Rig
from tandem_bench.scenario import Played, load, play
from tandem_bench.topology.spec import SERVER_NAME

PROBE = "probe-1"
PLAYED_S = 120.0
"""The scenario stands still afterwards too: links and modems stay in its last instant."""
REPOSITORY = Path(__file__).resolve().parents[2]
SITES = {f"site-{number}.tandem.test": IPv4Address(f"192.88.99.{number}") for number in (1, 2, 3)}
"""Of a block that nobody uses any more, so that they count as public ones."""
T = TypeVar("T")


def find_influxd() -> Path | None:
    """As ``kit`` finds it."""
    there = (
        os.environ.get("TANDEM_INFLUXD"),
        str(REPOSITORY / "build/influxdb/usr/bin/influxd"),
        shutil.which("influxd"),
    )
    return next((Path(p) for p in there if p and os.access(p, os.X_OK)), None)


def awaited(what: str, condition: Callable[[], T], seconds: float = 120.0) -> T:
    """What ``condition`` gives once it is true; AssertionError after ``seconds``."""
    until = time.monotonic() + seconds
    while not (met := condition()):
        assert time.monotonic() < until, f"not within {seconds} s: {what}"
        time.sleep(0.1)
    return met


def play_fault(control: Path, fault: dict[str, Any]) -> None:
    """At an emulated modem: ``tandem-bench modem --help``."""
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(control))
        client.sendall(json.dumps(fault).encode() + b"\n")
        with client.makefile() as answers:
            assert json.loads(answers.readline()) == {"ok": True}


QUERY = """
import json, pathlib, sys
from tandem_server.store import Influx
from tandem_server.store.private import account_password
with Influx("http://127.0.0.1:8086", "tandem", "tandem", account_password(pathlib.Path(sys.argv[1]))) as store:
    print(json.dumps([{"tags": dict(s.tags), "rows": s.rows} for s in store.query(sys.argv[2], json.loads(sys.argv[3]))]))
"""


@dataclass
class RunningKit:
    """Everything runs. ``folder``: laid out as a campaign folder."""

    rig: Rig
    folder: Path
    programs: Programs
    collector: Program

    @property
    def probe(self) -> Path:
        return self.folder / "probe" / PROBE

    def run(self, namespace: str, *argv: str) -> str:
        """A short program in a namespace, as root; its standard output."""
        return self.rig.topology.run(namespace, argv)

    @contextmanager
    def ruled(self, namespace: str, chain: str) -> Iterator[None]:
        """While this is open, nftables there has this chain, in a table of its own."""
        self.rig.topology.run(namespace, ["nft", "-f", "-"], f"table inet ruled {{\n{chain}\n}}\n")
        try:
            yield
        finally:
            self.run(namespace, "nft", "delete", "table", "inet", "ruled")

    def tool(self, namespace: str, program: str, *args: str) -> str:
        """Run one of the kit's own command lines in a namespace; its standard output."""
        argv = self.rig.command(namespace, confined([sys.executable, "-m", program, *args], Owner.of_caller()))
        done = subprocess.run(argv, capture_output=True, text=True, timeout=240, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def server(self, *args: str) -> str:
        """``tandem-server`` with the server's configuration; its standard output."""
        return self.tool("server", "tandem_server", *args, *self.server_config)

    @property
    def server_config(self) -> list[str]:
        return ["--config", str(self.folder / "server" / "server.toml")]

    @property
    def probe_config(self) -> list[str]:
        return ["--config", str(self.probe / "config.toml")]

    def status(self) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(
            self.tool("probe", "tandem", "status", "--json", "--socket", str(self.probe / "status.sock"))
        )
        return told

    def experiment(self, *args: str, name: str = "download") -> subprocess.Popen[str]:
        """``tandem experiment run NAME``, under way."""
        argv = [sys.executable, "-m", "tandem", "experiment", "run", name, "--json"]
        command = self.rig.command("probe", confined([*argv, *self.probe_config, *args], Owner.of_caller()))
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def manifests(self, running: subprocess.Popen[str]) -> list[dict[str, Any]]:
        """What the runs left, once the experiment has ended well."""
        printed, errors = running.communicate(timeout=240)
        assert running.returncode == 0, printed + errors
        return [json.loads((self.probe / "runs" / f"{run}.json").read_text()) for run in json.loads(printed)["runs"]]

    def stopped(self, running: subprocess.Popen[str]) -> dict[str, Any]:
        """The manifest of an endless experiment, of one run, that another shell ends."""
        self.tool("probe", "tandem", "experiment", "stop", *self.probe_config)
        printed, errors = running.communicate(timeout=240)
        assert running.returncode == 1, printed + errors
        (run,) = json.loads(printed)["runs"]
        told: dict[str, Any] = json.loads((self.probe / "runs" / f"{run}.json").read_text())
        assert told["failure"]["reason"] == "stopped", told["failure"]
        return told

    def measured(self, *args: str, name: str = "download") -> list[dict[str, Any]]:
        """The manifests of an experiment, made now."""
        return self.manifests(self.experiment(*args, name=name))

    def collector_cut(self) -> None:
        """The collector ends as with the power, and is started again."""
        os.kill(self.collector.pid, signal.SIGKILL)
        self.programs.end(self.collector)
        self.collector = self.programs.start("collector", self.collector.argv, READY_S)

    def play(self, path: str, fault: dict[str, Any]) -> None:
        play_fault(self.rig.control_socket(path), fault)

    def query(self, statement: str, **values: str) -> list[dict[str, Any]]:
        """InfluxQL with ``$name`` for ``values`` to the server's own database: series with ``tags`` and ``rows``."""
        folder = str(self.folder / "server" / "influxdb")
        argv = [sys.executable, "-c", QUERY, folder, statement, json.dumps(values)]
        done = subprocess.run(
            self.rig.command("server", argv), capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr
        told: list[dict[str, Any]] = json.loads(done.stdout)
        return told

    def polls_stored(self, path: str) -> int:
        """Radio records of a path in the database."""
        found = self.query('SELECT count("state") FROM "radio" WHERE "path" = $path', path=path)
        return int(found[0]["rows"][0][1]) if found else 0

    def ledger(self, *args: str) -> tuple[int, dict[str, Any]]:
        """Exit status, 1 where anything misses, and JSON of ``tandem-server ledger``."""
        argv = [sys.executable, "-m", "tandem_server", "ledger", "--json", *self.server_config, *args]
        done = subprocess.run(self.rig.command("server", argv), capture_output=True, text=True, check=False)
        assert done.returncode in (0, 1), done.stderr
        return done.returncode, json.loads(done.stdout)

    def ledger_by_run(self) -> dict[str, dict[str, Any]]:
        """Without files: none are sent here."""
        return {row["id"]: row for row in self.ledger("--no-files")[1]["runs"]}


@contextmanager
def running_kit(
    folder: Path,
    influxd: Path,
    tandem: Sequence[str] = (sys.executable, "-m", "tandem"),
    more: str = "",
    scene: Played | None = None,
    server_more: str = "",
    around: Sequence[str] = (),
    edited: Callable[[str], str] = str,
) -> Iterator[RunningKit]:
    """Up and polling; the scenario's first instant is past. ``tandem``: the collector's program; ``more``: of its configuration;
    ``scene``: what is played; ``server_more``: of the server's configuration; ``around``: what the collector's command line is given
    to, as root; ``edited``: changes its configuration."""
    server, probe, logs, bench = folder / "server", folder / "probe" / PROBE, folder / "logs", folder / "bench"
    for place in (server, probe, logs, bench):
        place.mkdir(parents=True)
    owner = Owner.of_caller()
    for place in (folder, *folder.rglob("*")):
        owner.give(place)
    played = scene or play(load("still", duration_s=PLAYED_S, seed=1))
    rig = Rig(played, bench, owner, wifi=True, server_addresses=2, sites=SITES)
    with rig, Programs(logs) as programs:

        def serve(*args: str) -> list[str]:
            return rig.command("server", confined([sys.executable, "-m", "tandem_server", *args], owner))

        config = ["--config", str(server / "server.toml")]
        (server / "server.toml").write_text(configuration.server_toml(str(influxd)) + server_more)
        for once in (
            serve("tls", "--folder", str(server / "tls"), "--name", SERVER_NAME, "--address", rig.server_address),
            serve("probe", "add", PROBE, *config, "--token-file", str(probe / "token")),
            serve("dash", "build", *config, "--seconds", "60"),
            serve("page", "build", *config, "--objects", "12", "--bytes", "150000", "--origins", "3"),
        ):
            subprocess.run(once, check=True, capture_output=True, timeout=120)
        for part in ("database", "gateway", "endpoint", "worker"):
            programs.start(part, serve("serve", part, *config), READY_S)
        (probe / "ca.pem").write_text((server / "tls" / "ca.pem").read_text())
        rig.start_radio()
        own = f'\n[experiments]\nfolder = "{REPOSITORY / "collector/examples/experiments"}"\n'
        text = configuration.collector_toml(PROBE, rig.probe_paths(), 3.0, 1.0, 1)
        (probe / "config.toml").write_text(edited(text) + own + more)
        argv = [*tandem, "run", "--config", str(probe / "config.toml")]
        collector = programs.start(
            "collector", rig.command("probe", [*around, *confined(argv, owner, COLLECTOR)]), READY_S
        )
        kit = RunningKit(rig, folder, programs, collector)
        awaited("the scenario begins", lambda: time.monotonic_ns() > rig.epoch_monotonic_ns)
        yield kit
        assert programs.watch() is None
        assert rig.failed() is None
        assert programs.end(kit.collector, 90).exit == 0
    text = (logs / "collector.log").read_text()
    assert "Traceback" not in text, text
