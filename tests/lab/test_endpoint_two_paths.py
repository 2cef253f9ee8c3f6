"""The whole server in a namespace, a client with two paths in another: subflows, their names, fallback, missing Multipath TCP."""

import json
import os
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

from support.experiment_process import parameters, run
from support.standalone_endpoint import CONTROL_PORT, MEASUREMENT_PORT, SOURCES
from support.two_paths import ADDRESS, SERVER, Space, lab, up, why_not
from tandem_server.store import StoreStartError, find_influxd

pytestmark = pytest.mark.lab

CONFIG = """
[listen]
[store]
binary = "{binary}"
[limits]
sessions_per_probe = 4
"""
SIZE = 2_000_000


def within(space: Space, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*space.enter, *command], capture_output=True, text=True, timeout=240, check=False)


@pytest.fixture(scope="module")
def two():
    if (lack := why_not()) is not None:
        pytest.skip(lack)
    with lab() as made:
        up(made)
        yield made


@pytest.fixture(scope="module")
def folder():
    """A folder that an account without privileges may enter: pytest's own are root's only."""
    with tempfile.TemporaryDirectory(prefix="tandem-server-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture(scope="module")
def serving(two, folder):
    try:
        (folder / "server.toml").write_text(CONFIG.format(binary=find_influxd()))
    except StoreStartError as error:
        pytest.skip(str(error))
    program = (sys.executable, "-m", "tandem_server")
    config = ("--config", folder / "server.toml")
    for args in (
        ("tls", "--folder", folder / "tls", "--name", "server.tandem.test", "--address", SERVER),
        ("probe", "add", "probe-1", *config, "--token-file", folder / "token"),
    ):
        subprocess.run([*program, *map(str, args)], check=True)
    # The server needs no right that nobody has not.
    unprivileged = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--inh-caps=-all"]
    for path in (folder, *folder.rglob("*")):
        os.chown(path, 65534, 65534)
    with (
        (folder / "serve.log").open("ab") as log,
        subprocess.Popen(
            [*two.server.enter, *unprivileged, *program, "serve", *map(str, config)],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            cwd=folder,
            env={**os.environ, "HOME": str(folder), "PYTHONPATH": SOURCES},
        ) as process,
    ):
        assert any(line.startswith("ready endpoint ") for line in process.stdout), (folder / "serve.log").read_text()
        yield two, folder
        process.terminate()
        assert process.wait(60) == 0, (folder / "serve.log").read_text()


def download(serving, **more):
    """Of ``SIZE`` bytes by the experiment; its last line, and what the server tells of its connection."""
    two, folder = serving
    server = {
        "control": f"https://{SERVER}:{CONTROL_PORT}",
        "measurement": f"http://{SERVER}:{MEASUREMENT_PORT}",
        "token_file": str(folder / "token"),
        "ca_file": str(folder / "tls/ca.pem"),
    }
    line = run(two, "download", parameters(server, **{"bytes": SIZE, "kind": "mptcp", "path": "a", **more}))
    assert line["failure"] is None
    (connection,) = line["result"]["sender"]["connections"]
    assert line["result"]["bytes"] == connection["bytes_sent"] == connection["bytes_acked"] == SIZE
    return line, connection


def test_both_paths_carry_and_each_byte_is_accounted(serving):
    # Whoami, by TCP, finds another address of b than its subflow comes from, as behind a carrier's NAT: it is named by elimination.
    two, folder = serving
    two.server.run(f"ip route add 198.51.100.7 via {ADDRESS['b']} dev tmp5-bs")
    two.probe.run(
        "nft 'add table ip nat; add chain ip nat out { type nat hook postrouting priority 100; };"
        f" add rule ip nat out oifname tmp5-b tcp dport {MEASUREMENT_PORT} tcp option mptcp missing snat to 198.51.100.7'"
    )
    try:
        line, connection = download(serving, run="run-both")
    finally:
        two.probe.run("nft delete table ip nat")
    assert line["public_addresses"] == {"a": ADDRESS["a"], "b": "198.51.100.7"}
    assert connection["end"] in ("complete", "budget")
    assert connection["fallback"] is False
    flows = {flow["path"]: flow for flow in connection["subflows"]}
    assert set(flows) == {"a", "b"}
    assert all(flow["bytes_acked"] > 0 and flow["rtt_ms_min"] > 0 for flow in flows.values())
    assert sum(flow["bytes_acked"] for flow in flows.values()) >= SIZE
    listed = within(two.server, sys.executable, "-c", QUERY, str(folder), "run-both")
    assert json.loads(listed.stdout) == {"a/A": True, "b/B": True}, listed.stderr


def test_as_many_processes_serve_as_there_are_cores(serving):
    command = b"tandem_server.cli.measurement_process"
    config = os.fsencode(serving[1] / "server.toml")
    mine = [p for p in Path("/proc").glob("[0-9]*/cmdline") if {command, config} <= set(p.read_bytes().split(b"\0"))]
    assert len(mine) == len(os.sched_getaffinity(0))


QUERY = """
import json, pathlib, sys, time
from tandem_server.store import Influx
from tandem_server.store.private import account_password
folder = pathlib.Path(sys.argv[1]) / "influxdb"
with Influx("http://127.0.0.1:8086", "tandem", "tandem", account_password(folder)) as store:
    deadline = time.monotonic() + 60
    while True:
        statement = 'SELECT count("bytes_acked") FROM "subflow" WHERE "run" = $run AND "end" = $end'
        answer = store.query(statement + ' GROUP BY "path", "operator"', {"run": sys.argv[2], "end": "server"})
        found = {s.tags["path"] + "/" + s.tags["operator"]: s.rows[0][1] > 0 for s in answer}
        if (len(found) == 2 and all(found.values())) or time.monotonic() > deadline:
            break
print(json.dumps(found))
"""


def test_tcp_is_named_after_its_sessions_path(serving):
    _, connection = download(serving, kind="tcp", path="b")
    assert connection["fallback"] is False
    assert [flow["path"] for flow in connection["subflows"]] == ["b"]


def test_options_stripped_on_the_way_are_a_fallback(serving):
    probe = serving[0].probe
    probe.run(
        "nft 'add table ip strip; add chain ip strip out { type filter hook output priority 0; };"
        " add rule ip strip out tcp dport 8480 reset tcp option mptcp'"
    )
    try:
        _, connection = download(serving)
    finally:
        probe.run("nft delete table ip strip")
    assert connection["fallback"] is True
    assert [flow["path"] for flow in connection["subflows"]] == ["a"]


def test_a_kernel_without_multipath_tcp_is_told_in_one_line_or_worked_without(tmp_path):
    config = tmp_path / "server.toml"
    config.write_text(CONFIG.format(binary=find_influxd()))
    endpoint = (sys.executable, "-m", "tandem_server", "serve", "endpoint", "--config", str(config))
    with closing(Space()) as without:
        without.run("sysctl -qw net.mptcp.enabled=0")
        told = within(without, *endpoint)
        assert (told.returncode, told.stderr.count("\n")) == (3, 1)
        assert "no Multipath TCP here; hint: sysctl net.mptcp.enabled=1" in told.stderr
        # With "optional" it goes on, as far as the missing certificate.
        config.write_text(config.read_text().replace("[listen]", '[listen]\nmultipath = "optional"'))
        (tmp_path / "influxdb").mkdir()
        (tmp_path / "influxdb/tandem.password").write_text("x")
        told = within(without, *endpoint)
        assert "going on with plain TCP" in told.stderr
        assert told.stderr.splitlines()[-1].endswith("hint: tandem-server tls")
