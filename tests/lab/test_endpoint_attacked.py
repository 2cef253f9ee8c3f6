"""What a stranger and a probe's owner can do to others at the endpoint's ports: its two listeners, as they are served."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.standalone_endpoint import CONTROL_PORT, MEASUREMENT_PORT, lone_endpoint
from support.two_paths import SERVER, Space, lab_with
from tandem.experiment.control import Session

pytestmark = lab_with()
PATIENCE_S = 60
BOUNDS = "[limits]\nconnections_per_session = 48\nhttps_connections = 80\nhead_s = 60\n"
NET = "2a0e:fff0:0:1"
"""One customer's 64 bits; nothing of it leaves the namespace."""


class Served:
    """The endpoint, and a second probe's token."""

    def __init__(self, folder: Path) -> None:
        self.context = ssl.create_default_context(cafile=folder / "tls/ca.pem")
        program = [sys.executable, "-m", "tandem_server", "probe", "add", "probe-2", "--config", folder / "server.toml"]
        added = subprocess.run([str(part) for part in program], check=True, capture_output=True, text=True)
        self.tokens = [(folder / "token").read_text().strip(), added.stdout.strip()]

    def control(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(SERVER, CONTROL_PORT, timeout=PATIENCE_S, context=self.context)

    def ask(
        self, connection: http.client.HTTPSConnection, probe: int, method: str, path: str, body: object = None
    ) -> tuple[int, Any]:
        login = {"Authorization": f"Bearer {self.tokens[probe]}"}
        connection.request(method, path, None if body is None else json.dumps(body), login)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())

    def session(self, probe: int) -> Session:
        with contextlib.closing(self.control()) as connection:
            asked = {"run": f"run-{probe}", "kind": "any"}
            status, told = self.ask(connection, probe, "POST", "/v1/sessions", asked)
        assert status == 201, told
        return Session(told["session"], bytes.fromhex(told["key"]), "a")


@pytest.fixture(scope="module")
def space() -> Iterator[Space]:
    with contextlib.closing(Space()) as made:
        made.run("echo 0 >/proc/sys/net/ipv6/conf/all/disable_ipv6; ip addr add 203.0.113.10/32 dev lo")
        made.run(f"sysctl -qw net.ipv6.ip_nonlocal_bind=1; ip route add local {NET}::/64 dev lo")
        yield made


@pytest.fixture(scope="module")
def served(space: Space, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("attacked")
    with lone_endpoint(space, SERVER, folder, more=BOUNDS):
        yield Served(folder)


def head(target: str, session: Session | None = None) -> bytes:
    shown = f"X-Tandem-Session: {session.claim(target)}\r\n" if session else ""
    return f"GET {target} HTTP/1.1\r\nHost: x\r\n{shown}\r\n".encode()


def connect(to: str = SERVER, source: str = SERVER) -> socket.socket:
    return socket.create_connection((to, MEASUREMENT_PORT), PATIENCE_S, source_address=(source, 0))


def status(client: socket.socket) -> int | None:
    """Of the answer; None: the connection ends without one."""
    told = b""
    with contextlib.suppress(ConnectionResetError):
        while len(told) < 12 and (more := client.recv(12 - len(told))):
            told += more
    return int(told[9:12]) if told else None


def whoami(to: str = SERVER, source: str = SERVER) -> int | None:
    with connect(to, source) as client:
        client.sendall(head("/v1/whoami"))
        return status(client)


@pytest.mark.usefixtures("served")
def test_silent_connections_of_one_customer_shut_nobody_out(space):
    """More of them than there are places, each from an address of its own."""

    def attack() -> tuple[list[int | None], list[int | None], int | None]:
        with contextlib.ExitStack() as held:
            silent = [held.enter_context(connect("::1", f"{NET}::{number:x}")) for number in range(1, 301)]
            others = [whoami() for _ in range(20)]
            neighbours = [whoami("::1", f"{NET}::ffff") for _ in range(20)]
            return others, neighbours, status(silent[0])

    others, neighbours, oldest = space.inside(attack)
    assert others == [200] * 20
    assert neighbours == [200] * 20
    assert oldest is None  # it made room, long before its time for a head was over (408)


def test_two_kits_behind_one_address_have_all_their_connections(space, served):
    def load() -> list[int | None]:
        with contextlib.ExitStack() as held:
            clients = []
            for probe in (0, 1):
                session = served.session(probe)
                for _ in range(48):
                    clients.append(held.enter_context(connect()))
                    clients[-1].sendall(head("/v1/download?seconds=60", session))
            return [status(client) for client in clients]

    assert space.inside(load) == [200] * 96


def test_one_token_cannot_take_all_places_of_the_control_channel(space, served):
    """What is over its share is told so and ends, and takes no place meanwhile."""

    def attack() -> tuple[list[int], bool, tuple[int, Any]]:
        with contextlib.ExitStack() as held:
            kept = [held.enter_context(contextlib.closing(served.control())) for _ in range(90)]
            answers = [served.ask(one, 0, "GET", "/v1/pages")[0] for one in kept]
            ended = all(one.sock is None or one.sock.recv(1) == b"" for one in kept[64:])
            other = held.enter_context(contextlib.closing(served.control()))
            return answers, ended, served.ask(other, 1, "GET", "/v1/pages")

    answers, ended, other = space.inside(attack)
    assert answers == [200] * 64 + [429] * 26
    assert ended
    assert other == (200, {"pages": []})
