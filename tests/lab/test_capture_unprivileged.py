"""The endpoint's own captures under an account without privileges: by a tcpdump that has the one capability, or by an ambient one."""

from __future__ import annotations

import http.client
import io
import json
import os
import shutil
import socket
import ssl
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from support.standalone_endpoint import CONTROL_PORT, MEASUREMENT_PORT, MEASUREMENT_TLS_PORT, lone_endpoint
from support.two_paths import SERVER, Space, lab_with
from tandem.experiment.control import Session
from tandem_server.endpoint.capture import HEADER_BYTES, ends_of, read_header, records

pytestmark = lab_with("tcpdump", "setcap", "setpriv")
ALLOWED = "[capture]\nallowed = true\n"
NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
WAYS = {"a copy of tcpdump": "--inh-caps=-all", "an ambient capability": "--inh-caps=-all,+net_raw"}


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that an account without privileges may enter: pytest's own are root's only."""
    with tempfile.TemporaryDirectory(prefix="tandem-capture-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture
def space() -> Iterator[Space]:
    with closing(Space()) as made:
        made.run(f"ip link set lo up; ip addr add {SERVER}/32 dev lo")
        yield made


def measured(server: dict[str, str], tls: bool) -> dict[str, Any]:
    """A session with a capture, a download in it, and what its end tells; from within the namespace."""
    context = ssl.create_default_context(cafile=server["ca_file"])
    login = {"Authorization": f"Bearer {Path(server['token_file']).read_text().strip()}"}

    def control(method: str, path: str, body: object = None) -> dict[str, Any]:
        with closing(http.client.HTTPSConnection(SERVER, CONTROL_PORT, context=context)) as connection:
            connection.request(method, path, None if body is None else json.dumps(body), login)
            told: dict[str, Any] = json.loads(connection.getresponse().read())
            return told

    asked = {"run": "run-1", "kind": "tcp", "path": "a", "bytes": 50_000, "capture": True, "tls": tls}
    session = control("POST", "/v1/sessions", asked)
    if "session" not in session:
        return session
    plain = socket.create_connection((SERVER, session["measurement_port"]))
    with context.wrap_socket(plain, server_hostname=SERVER) if tls else plain as client:
        claim = Session(session["session"], bytes.fromhex(session["key"]), "a").claim("/v1/download?bytes=50000")
        head = f"GET /v1/download?bytes=50000 HTTP/1.1\r\nHost: x\r\nX-Tandem-Session: {claim}\r\n\r\n"
        client.sendall(head.encode())
        while client.recv(65536):
            pass
    return control("DELETE", f"/v1/sessions/{session['session']}")


@pytest.mark.parametrize(("way", "tls"), list(zip(WAYS, (False, True), strict=True)))
def test_a_session_is_captured(space, folder, way, tls):
    path = os.environ["PATH"]
    account = [*NOBODY, WAYS[way]]
    if way == "a copy of tcpdump":
        (folder / "bin").mkdir()
        copy = shutil.copy(str(shutil.which("tcpdump")), folder / "bin/tcpdump")
        path = f"{folder / 'bin'}:{path}"
    else:
        account.append("--ambient-caps=-all,+net_raw")
    with lone_endpoint(space, SERVER, folder, account=account, more=ALLOWED, path=path) as server:
        if way == "a copy of tcpdump":
            subprocess.run(["setcap", "cap_net_raw+ep", copy], check=True)
        told = space.inside(lambda: measured(server, tls))
    capture = told["capture"]
    assert (capture["truncated"], capture["packets_dropped"]) == (False, 0)
    raw = (folder / "traces/probe-1" / capture["name"]).read_bytes()
    assert len(raw) == capture["bytes"]
    link = read_header(raw[:HEADER_BYTES]).link_type
    seen = [ends_of(one, link) for one in records(io.BytesIO(raw[HEADER_BYTES:]))]
    assert len(seen) == capture["packets"] >= 6
    peer = told["connections"][0]["peer"]
    here, there = (SERVER, MEASUREMENT_TLS_PORT if tls else MEASUREMENT_PORT), (peer["address"], peer["port"])
    assert set(seen) == {(here, there), (there, here)}


def test_without_the_right_the_probe_is_told(space, folder):
    account = [*NOBODY, "--inh-caps=-all"]
    with lone_endpoint(space, SERVER, folder, account=account, more=ALLOWED) as server:
        told = space.inside(lambda: measured(server, False))
    assert told["error"].startswith("the endpoint cannot capture: ")
    assert "permission" in told["error"]
