"""What keeps the tunnel up reads files of enrolment and of the playbook, and the kernel's routes."""

import contextlib
import json
import os
import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from program_module import module_of

ROLES = Path(__file__).parents[3] / "ansible/roles"
KEY = "A" * 43 + "="
TOLD = {
    "address": "10.87.0.16/16",
    "server_public_key": KEY,
    "endpoint": "hub.example:51820",
    "allowed_ips": ["10.87.0.0/16"],
    "keepalive_s": 25,
}


tunnel = module_of(ROLES / "wireguard_client/files/tandem-tunnel")


def test_what_enrolment_and_playbook_say():
    settings = json.dumps({"endpoints": ["[2001:db8::1]:51820"], "userspace": True, "silent_s": 50})
    read = tunnel.read(json.dumps({"wireguard": TOLD}), settings)
    assert read.places == [("hub.example", 51820), ("2001:db8::1", 51820)]
    assert (read.address, read.keepalive_s, read.userspace, read.silent_s) == ("10.87.0.16/16", 25, True, 50)
    assert tunnel.read(json.dumps({"wireguard": TOLD}), None).silent_s == 150
    assert tunnel.read('{"wireguard": null}', None) is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"address": "10.87.0.999"},
        {"server_public_key": "short"},
        {"endpoint": "hub.example"},
        {"endpoint": "hub.example:70000"},
        {"endpoint": "-x; reboot:1"},
        {"allowed_ips": []},
        {"allowed_ips": ["all"]},
        {"keepalive_s": 0},
        {"keepalive_s": None},
    ],
)
def test_what_is_wrong_ends_it_with_the_mend(wrong):
    with pytest.raises(tunnel.TunnelError, match="mend: enrol anew"):
        tunnel.read(json.dumps({"wireguard": {**TOLD, **wrong}}), None)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*TOLD, "wireguard", "endpoints", "silent_s"]), inner)
    ),
)


anything = st.text(max_size=50) | json_values.map(json.dumps)


@given(enrolled=anything | json_values.map(lambda told: json.dumps({"wireguard": told})), settings=anything | st.none())
def test_any_file_is_read_or_refused(enrolled, settings):
    with contextlib.suppress(tunnel.TunnelError):
        tunnel.read(enrolled, settings)


def test_the_hub_is_tried_as_the_system_routes_it_then_over_each_route():
    shown = json.dumps(
        [
            {"dst": "default", "gateway": "10.2.0.1", "dev": "wwan1", "metric": 701},
            {"dst": "default", "gateway": "10.1.0.1", "dev": "wwan0", "metric": 700},
            {"dst": "default", "dev": "wg-tandem"},
            {"dst": "default", "dev": "ppp0", "metric": 702},
        ]
    )
    routes = tunnel.default_routes(shown)
    assert [route.interface for route in routes] == ["wwan0", "wwan1", "ppp0"]
    ways = tunnel.ways([("192.0.2.1", 51820), ("192.0.2.2", 51820)], routes)
    assert ways[:3] == [("192.0.2.1", 51820, None), ("192.0.2.2", 51820, None), ("192.0.2.1", 51820, routes[0])]
    assert len(ways) == 8
    assert tunnel.default_routes("") == []


@pytest.fixture
def systemd(tmp_path, monkeypatch):
    """Its end of the socket that a service of Type=notify is given."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as heard:
        heard.bind(str(tmp_path / "notify"))
        heard.setblocking(False)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        yield heard


def test_it_is_started_when_the_interface_is_there(tmp_path, systemd, monkeypatch):
    heard = []
    monkeypatch.setattr(tunnel.Hub, "up", lambda _: heard.append("up"))
    monkeypatch.setattr(tunnel, "keep", lambda _: heard.append(systemd.recv(100)))
    (tmp_path / "enrolled.json").write_text(json.dumps({"wireguard": TOLD}))
    assert tunnel.main(tmp_path) == 0
    assert heard == ["up", b"READY=1"]


def test_without_an_interface_it_is_not_started(tmp_path, systemd, monkeypatch):
    def none(_):
        raise tunnel.TunnelError(3, "this kernel makes no WireGuard interface")

    monkeypatch.setattr(tunnel.Hub, "up", none)
    (tmp_path / "enrolled.json").write_text(json.dumps({"wireguard": TOLD}))
    assert tunnel.main(tmp_path) == 3
    with pytest.raises(BlockingIOError):
        systemd.recv(100)


def test_no_tunnel_is_a_start_and_no_failure(tmp_path, systemd):
    (tmp_path / "enrolled.json").write_text('{"wireguard": null}')
    assert tunnel.main(tmp_path) == 0
    assert systemd.recv(100) == b"READY=1"


def test_an_abstract_socket_is_told_too():
    name = f"@tandem-tunnel-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as heard:
        heard.bind("\0" + name[1:])
        tunnel.ready(name)
        assert heard.recv(100) == b"READY=1"
    tunnel.ready(None)
