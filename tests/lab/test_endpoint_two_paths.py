"""The whole server in a namespace, a client with two paths in another: subflows, their names, fallback, missing Multipath TCP."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import rated_links
from two_paths import Space, why_not

from tandem_server.store import StoreStartError, find_influxd

pytestmark = pytest.mark.lab

ADDRESS = "10.91.9.1"

CONFIG = """
[listen]
[store]
binary = "{binary}"
[limits]
sessions_per_probe = 4
"""

DOWNLOAD = """
import http.client, json, socket, ssl, sys
from tandem.experiment.control import Session
folder, ask, query, protocol, source = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3], int(sys.argv[4]), sys.argv[5]
context = ssl.create_default_context(cafile=folder + "/tls/ca.pem")
login = {"Authorization": "Bearer " + open(folder + "/token").read().strip()}
def control(method, path, body=None):
    connection = http.client.HTTPSConnection("10.91.9.1", 8444, context=context)
    connection.request(method, path, body, login)
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())
status, session = control("POST", "/v1/sessions", json.dumps(ask))
assert status == 201, session
client = socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol)
client.bind((source, 0))
client.connect(("10.91.9.1", 8480))
claim = Session(session["session"], bytes.fromhex(session["key"]), "a").claim(f"/v1/download?{query}")
client.sendall(f"GET /v1/download?{query} HTTP/1.1\\r\\nHost: x\\r\\nX-Tandem-Session: {claim}\\r\\n\\r\\n".encode())
received = b""
while b"\\r\\n\\r\\n" not in received:
    received += client.recv(65536)
total = len(received.partition(b"\\r\\n\\r\\n")[2])
while more := client.recv(1 << 20):
    total += len(more)
client.close()
print(json.dumps({"received": total, "ended": control("DELETE", "/v1/sessions/" + session["session"])[1]}))
"""


class Ends:
    """A client with two paths to a server."""

    def __init__(self) -> None:
        self.client, self.server = Space(), Space()
        for space in (self.client, self.server):
            space.run(
                "sysctl -qw net.mptcp.enabled=1; sysctl -eqw net.mptcp.blackhole_timeout=0"
            )  # which not every kernel has
        self.server.run(f"ip addr add {ADDRESS}/32 dev lo")
        for n in ("1", "2"):
            rated_links.join(self.client.pid, f"c{n}", self.server.pid, f"s{n}")
            self.server.run(f"ip addr add 10.91.{n}.1/24 dev s{n} && ip link set s{n} up")
            self.client.run(
                f"ip addr add 10.91.{n}.2/24 dev c{n} && ip link set c{n} up"
                f" && ip rule add from 10.91.{n}.2 table 10{n}"
                f" && ip route add default via 10.91.{n}.1 dev c{n} table 10{n}"
                f" && ip route add default via 10.91.{n}.1 dev c{n} metric {n}00"
                f" && ip mptcp endpoint add 10.91.{n}.2 dev c{n} id {n} subflow"
            )


def within(space: Space, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*space.enter, *command], capture_output=True, text=True, timeout=240, check=False)


@pytest.fixture(scope="module")
def ends():
    if (lack := why_not()) is not None:
        pytest.skip(lack)
    made = Ends()
    yield made
    made.client.close()
    made.server.close()


@pytest.fixture(scope="module")
def folder():
    """A folder that an account without privileges may enter: pytest's own are root's only."""
    with tempfile.TemporaryDirectory(prefix="tandem-server-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture(scope="module")
def serving(ends, folder):
    try:
        (folder / "server.toml").write_text(CONFIG.format(binary=find_influxd()))
    except StoreStartError as error:
        pytest.skip(str(error))
    program = (sys.executable, "-m", "tandem_server")
    config = ("--config", folder / "server.toml")
    for args in (
        ("tls", "--folder", folder / "tls", "--name", "server.tandem.test", "--address", ADDRESS),
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
            [*ends.server.enter, *unprivileged, *program, "serve", *map(str, config)],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            cwd=folder,
            env={**os.environ, "HOME": str(folder), "PYTHONPATH": readable_path()},
        ) as process,
    ):
        ready = [line.split()[1] for line in iter_until(process.stdout, "ready endpoint ")]
        assert "endpoint" in ready, (folder / "serve.log").read_text()
        yield ends, folder
        process.terminate()
        assert process.wait(60) == 0, (folder / "serve.log").read_text()


def readable_path():
    return os.pathsep.join(str(Path(p).resolve()) for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p)


def iter_until(lines, start):
    for line in lines:
        yield line
        if line.startswith(start):
            return


def download(serving, query, protocol=262, source="10.91.1.2", **ask):
    whole = {"run": "run-1", "kind": "mptcp", "path": "a", **ask}
    ends, folder = serving
    done = within(
        ends.client, sys.executable, "-c", DOWNLOAD, str(folder), json.dumps(whole), query, str(protocol), source
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    (connection,) = told["ended"]["connections"]
    return told["received"], connection


def test_both_paths_carry_and_each_byte_is_accounted(serving):
    # b's address is another than the one it comes from, as behind a carrier's NAT: it is named by elimination.
    paths = {"a": {"operator": "A", "address": "10.91.1.2"}, "b": {"operator": "B", "address": "198.51.100.7"}}
    received, connection = download(serving, "seconds=1", run="run-both", paths=paths)
    assert received == connection["bytes_sent"] == connection["bytes_acked"]
    assert connection["end"] in ("complete", "budget")
    assert connection["fallback"] is False
    flows = {flow["path"]: flow for flow in connection["subflows"]}
    assert set(flows) == {"a", "b"}
    assert all(flow["bytes_acked"] > 0 and flow["rtt_ms_min"] > 0 for flow in flows.values())
    carried = sum(flow["bytes_acked"] for flow in flows.values())
    assert received <= carried
    ends, folder = serving
    listed = within(ends.server, sys.executable, "-c", QUERY, str(folder), "run-both")
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
    received, connection = download(serving, "bytes=1000000", 6, "10.91.2.2", kind="tcp", path="b")
    assert received == 1_000_000 == connection["bytes_acked"]
    assert connection["fallback"] is False
    assert [flow["path"] for flow in connection["subflows"]] == ["b"]


def test_options_stripped_on_the_way_are_a_fallback(serving):
    client = serving[0].client
    client.run(
        "nft 'add table ip strip; add chain ip strip out { type filter hook output priority 0; };"
        " add rule ip strip out tcp dport 8480 reset tcp option mptcp'"
    )
    try:
        received, connection = download(serving, "bytes=1000000")
    finally:
        client.run("nft delete table ip strip")
    assert received == 1_000_000
    assert connection["fallback"] is True
    assert [flow["path"] for flow in connection["subflows"]] == ["a"]


def test_a_kernel_without_multipath_tcp_is_told_in_one_line_or_worked_without(ends, tmp_path):
    config = tmp_path / "server.toml"
    config.write_text(CONFIG.format(binary=find_influxd()))
    endpoint = (sys.executable, "-m", "tandem_server", "serve", "endpoint", "--config", str(config))
    ends.client.run("sysctl -qw net.mptcp.enabled=0")
    try:
        told = within(ends.client, *endpoint)
        assert (told.returncode, told.stderr.count("\n")) == (3, 1)
        assert "no Multipath TCP here; mend: sysctl net.mptcp.enabled=1" in told.stderr
        # With "optional" it goes on, as far as the missing certificate.
        config.write_text(config.read_text().replace("[listen]", '[listen]\nmultipath = "optional"'))
        (tmp_path / "influxdb").mkdir()
        (tmp_path / "influxdb/tandem.password").write_text("x")
        told = within(ends.client, *endpoint)
        assert "going on with plain TCP" in told.stderr
        assert told.stderr.splitlines()[-1].endswith("mend: tandem-server tls")
    finally:
        ends.client.run("sysctl -qw net.mptcp.enabled=1")


def test_a_full_disk_is_told_in_one_line(tmp_path):
    script = 'mount -t tmpfs -o size=1M none "$1" && exec "$2" -m tandem_server serve database --config "$3"'
    place = tmp_path / "small"
    place.mkdir()
    config = tmp_path / "server.toml"
    config.write_text(CONFIG.format(binary=find_influxd()).replace("[store]", '[store]\nfolder = "small/influxdb"'))
    told = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, "sh", str(place), sys.executable, str(config)],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert (told.returncode, told.stderr.count("\n")) == (3, 1)
    assert "disk full" in told.stderr
