"""A whole server, as `tandem-server serve` runs it, on loopback ports of its own."""

import contextlib
import http.client
import io
import json
import random
import socket
import ssl
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from tandem_server.cli.main import main
from tandem_server.store import Influx, StoreStartError, find_influxd


def free_ports(count):
    """Below the ports that the kernel gives away (``ip_local_port_range``): a server that is started again finds its own still free."""
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    ports = set()
    while len(ports) < count:
        port = random.randrange(lowest // 2, lowest)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            ports.add(port)
    return list(ports)


def wait_for(condition, seconds=120, pause_s=0.01):
    """Until it is true; what it is then."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline
        time.sleep(pause_s)
    return found


def tandem_server(*args):
    """One command in a process of its own."""
    command = [sys.executable, "-m", "tandem_server", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)


def command(*args):
    """One command in this process, for those that leave signals and logging alone: status, stdout, stderr."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main([str(arg) for arg in args])
    return status, out.getvalue(), err.getvalue()


@dataclass
class Server:
    folder: Path
    gateway_port: int
    control_port: int
    measurement_port: int
    store_port: int
    process: subprocess.Popen
    token: str

    def https(self, port, method, path, body=None, headers=None, token=None):
        """Status, headers and decoded JSON of one request."""
        context = ssl.create_default_context(cafile=self.folder / "tls/ca.pem")
        connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=60)
        login = {"Authorization": f"Bearer {self.token if token is None else token}"}
        try:
            connection.request(method, path, body, {**login, **(headers or {})})
            response = connection.getresponse()
            return response.status, dict(response.getheaders()), json.loads(response.read())
        finally:
            connection.close()

    def gateway(self, method, path, body=None, headers=None, token=None):
        return self.https(self.gateway_port, method, path, body, headers, token)

    def store(self):
        password = (self.folder / "influxdb/tandem.password").read_text().strip()
        return Influx(f"http://127.0.0.1:{self.store_port}", "tandem", "tandem", password)


def lay_out(folder):
    """tls/, server.toml and the token of probe-1; returns the four ports. The test skips where there is no InfluxDB."""
    ports = free_ports(4)
    try:
        binary = find_influxd()
    except StoreStartError as error:
        pytest.skip(str(error))
    (folder / "server.toml").write_text(
        f"""
[listen]
host = "127.0.0.1"
gateway_port = {ports[0]}
control_port = {ports[1]}
measurement_port = {ports[2]}
processes = 1
[store]
binary = "{binary}"
port = {ports[3]}
[limits]
requests_at_once = 16
"""
    )
    made = command("tls", "--folder", folder / "tls", "--name", "server.tandem.test", "--address", "127.0.0.1")
    assert made == (0, "", "")
    config = ("--config", folder / "server.toml")
    assert command("probe", "add", "probe-1", *config, "--token-file", folder / "token") == (0, "", "")
    return ports


def start(folder, *roles):
    command_line = [sys.executable, "-m", "tandem_server", "serve", *roles, "--config", str(folder / "server.toml")]
    with (folder / "serve.log").open("ab") as log:
        return subprocess.Popen(command_line, stdout=subprocess.PIPE, stderr=log, text=True)


def await_ready(process, what):
    for line in process.stdout:
        if line.startswith(f"ready {what} "):
            return line.split()[2]
    log = Path(process.args[-1]).with_name("serve.log")
    raise AssertionError(f"{what} never got ready: {log.read_text()[-2000:]}")


def end(process):
    process.terminate()
    process.stdout.read()
    process.stdout.close()
    return process.wait(120)


@contextlib.contextmanager
def working(folder):
    """A worker that works."""
    process = start(folder, "worker")
    try:
        await_ready(process, "worker")
        yield process
    finally:
        status = end(process)
    assert status == 0


@contextlib.contextmanager
def whole_server(folder, change=lambda _folder: None, kind=Server):
    """One that serves; ``change``: what is to be done to its folder before."""
    ports = lay_out(folder)
    change(folder)
    served = kind(folder, *ports, start(folder), (folder / "token").read_text().strip())
    try:
        await_ready(served.process, "endpoint")
        yield served
    finally:
        status = end(served.process)  # a test may have started it again
    assert status == 0


@contextlib.contextmanager
def gateway_alone(folder, more="", kind=Server):
    """A gateway without a database, for what needs none; it knows probe-1. ``more``: of its server.toml. No traceback is in its log."""
    (port,) = free_ports(1)
    (folder / "server.toml").write_text(f'[listen]\nhost = "127.0.0.1"\ngateway_port = {port}\n{more}')
    (folder / "influxdb").mkdir()
    (folder / "influxdb/tandem.password").write_text("unused")
    made = command("tls", "--folder", folder / "tls", "--name", "server.tandem.test", "--address", "127.0.0.1")
    assert made == (0, "", "")
    added = command("probe", "add", "probe-1", "--config", folder / "server.toml", "--token-file", folder / "token")
    assert added == (0, "", "")
    process = start(folder, "gateway")
    try:
        await_ready(process, "gateway")
        yield kind(folder, port, 0, 0, 0, process, (folder / "token").read_text().strip())
    finally:
        status = end(process)
    assert status == 0
    assert "Traceback" not in (folder / "serve.log").read_text()
