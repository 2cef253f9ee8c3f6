"""A hub and a kit whose tunnel to it is made by wireguard-go, over two operators.

    kit ── path-a (10.64.10.0/24) ──┐
     └──── path-b (10.64.11.0/24) ──┴── operators (NAT) ── 203.0.113.0/24 ── hub

Real WireGuard (user space), the real wg-quick and ``tandem-tunnel``; the paths are cables without delay.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from support.two_paths import why_not as no_namespaces
from tandem_bench.topology.namespace import Namespace

PROGRAM = Path(__file__).resolve().parents[2] / "ansible/roles/wireguard_client/files/tandem-tunnel"
HUB_PORT, ECHO_PORT = 51820, 7007
SILENT_S = 50
"""Shorter than the time between two handshakes: the tests break the tunnel within it."""
NAT = """
table ip operators {
    chain forward {
        type filter hook forward priority filter; policy drop;
        iifname "kit-*" accept
        ct state established accept
    }
    chain out {
        type nat hook postrouting priority srcnat;
        oifname "hub" masquerade
    }
}
"""
HUB_INSIDE, HUB_AT, KIT_INSIDE = "10.87.0.1", "203.0.113.10", "10.87.0.16"
NAME = "hub.tandem.test"
ECHO = f"""
import socket
with socket.create_server(("{HUB_INSIDE}", {ECHO_PORT})) as listener:
    print("ready", flush=True)
    while True:
        connection, _ = listener.accept()
        with connection:
            connection.sendall(connection.recv(1000))
"""
ASK = f"""
import socket, sys
try:
    with socket.create_connection(("{HUB_INSIDE}", {ECHO_PORT}), timeout=3) as connection:
        connection.sendall(b"who is there")
        sys.exit(connection.recv(1000) != b"who is there")
except OSError as error:
    sys.exit(f"no answer: {{error}}")
"""


def programs() -> str | None:
    """A PATH with ``wg`` and ``wireguard-go``: the system's, or those that kit unpacked."""
    unpacked = os.environ.get("TANDEM_WIREGUARD", "")
    path = f"{unpacked}/usr/bin{os.pathsep}{os.environ['PATH']}" if unpacked else os.environ["PATH"]
    return path if all(shutil.which(name, path=path) for name in ("wg", "wg-quick", "wireguard-go")) else None


def why_not() -> str | None:
    """Why there can be no tunnel here; None when there can."""
    if lack := no_namespaces():
        return lack
    if shutil.which("nft") is None:
        return "nft is not installed"
    if programs() is None:
        return "wg, wg-quick and wireguard-go not found; hint: ./kit setup, or TANDEM_WIREGUARD=FOLDER of the unpacked packages"
    return None if Path("/dev/net/tun").exists() else "/dev/net/tun is missing; hint: modprobe tun"


def awaited(met: Callable[[], bool], what: Callable[[], str], within_s: float) -> float:
    """Seconds until ``met``; AssertionError with ``what`` it said last."""
    began_s = time.monotonic()
    while not met():
        assert time.monotonic() - began_s < within_s, what()
        time.sleep(1.0)
    return time.monotonic() - began_s


class WireGuardEnd:
    """A namespace with a tunnel program in it."""

    def __init__(self, name: str, folder: Path, files: dict[str, str]) -> None:
        self.name, self.folder = name, folder
        self.namespace = Namespace(name, files)
        self.environment = os.environ | {"PATH": programs() or ""}

    def open(self, stack: ExitStack) -> None:
        self.folder.mkdir()
        self.namespace.open()
        stack.callback(self.namespace.close)
        # wg finds the program by a socket that bears the interface's name; every end calls its interface the same.
        self.namespace.run(["mount", "-t", "tmpfs", "tmpfs", "/run"])

    def wg(self, *words: str, text: str = "") -> str:
        argv = ["env", f"PATH={self.environment['PATH']}", "wg", *words]
        return self.namespace.run(argv, text).strip()

    def make_key(self) -> str:
        """Into the folder; the public half."""
        key = self.wg("genkey")
        file = self.folder / "wireguard.key"
        file.touch(mode=0o600)
        file.write_text(key + "\n")
        return self.wg("pubkey", text=key + "\n")

    def start(self, stack: ExitStack, argv: list[str | Path], log: str) -> subprocess.Popen[bytes]:
        """A program in here until the end; what it says goes into the file ``log``."""
        with (self.folder / log).open("wb") as said:
            process = subprocess.Popen(
                self.namespace.command(argv), stdin=subprocess.DEVNULL, stdout=said, stderr=said, env=self.environment
            )
        stack.callback(_end, process)
        return process

    def said(self, log: str) -> str:
        return (self.folder / log).read_text(errors="replace")


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class KitEnd(WireGuardEnd):
    """A kit, enrolled at the hub under ``NAME``."""

    def __init__(self, folder: Path) -> None:
        super().__init__("kit", folder, {"/etc/hosts": f"127.0.0.1 localhost\n{HUB_AT} {NAME}\n"})

    def enrol(self, hub_key: str) -> None:
        told = {
            "address": f"{KIT_INSIDE}/16",
            "server_public_key": hub_key,
            "endpoint": f"{NAME}:{HUB_PORT}",
            "allowed_ips": ["10.87.0.0/16"],
            "keepalive_s": 25,
        }
        (self.folder / "enrolled.json").write_text(json.dumps({"wireguard": told}))

    def run_tunnel(self, stack: ExitStack) -> None:
        """As the units of the role ``wireguard_client`` do: wg-quick with the program's configuration, then the fail-over."""
        here = [sys.executable, str(PROGRAM), "--etc", str(self.folder)]
        conf = self.folder / "wg-tandem.conf"
        conf.touch(mode=0o600)
        conf.write_text(self.namespace.run([*here, "conf"]))
        path = ["env", f"PATH={self.environment['PATH']}"]
        self.namespace.run([*path, "wg-quick", "up", str(conf)])
        stack.callback(self.namespace.run, [*path, "wg-quick", "down", str(conf)])
        self.start(stack, [*here, "--silent", str(SILENT_S), "keep"], "tunnel.log")

    def answered(self) -> bool:
        argv = self.namespace.command([sys.executable, "-c", ASK])
        return subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode == 0

    def out_of(self) -> str:
        """The interface that the tunnel's own packets take."""
        host = self.wg("show", "wg-tandem", "endpoints").split()[1].rsplit(":", 1)[0]
        return str(json.loads(self.namespace.run(["ip", "-json", "route", "get", host, "mark", "22087"]))[0]["dev"])


@dataclass
class Tunnel:
    """``operators``: the namespace between; ``kit``: with a tunnel that runs."""

    operators: Namespace
    hub: WireGuardEnd
    kit: KitEnd

    def told(self) -> str:
        return "\n".join(end.said("tunnel.log") + end.wg("show") for end in (self.kit, self.hub))

    def kill_path(self, path: str) -> None:
        """What the kit sends over ``path`` is lost, and nobody tells it."""
        self.operators.run(["ip", "rule", "add", "iif", f"kit-{path}", "blackhole", "pref", "100"])


@contextmanager
def tunnels(folder: Path) -> Iterator[Tunnel]:
    with ExitStack() as stack:
        hub, kit = WireGuardEnd("hub", folder / "hub", {}), KitEnd(folder / "kit")
        operators = Namespace("operators", {})
        for end in (hub, kit):
            end.open(stack)
        operators.open()
        stack.callback(operators.close)
        operators.sysctl({"net.ipv4.ip_forward": "1"})
        operators.run(
            ["ip", "link", "add", "hub", "type", "veth", "peer", "name", "net", "netns", str(hub.namespace.pid)]
        )
        _ip(operators, "address add 203.0.113.1/24 dev hub", "link set hub up")
        operators.run(["nft", "-f", "-"], NAT)
        _ip(hub.namespace, f"address add {HUB_AT}/24 dev net", "link set net up", "route add default via 203.0.113.1")
        for number, path in enumerate("ab"):
            peer = ["peer", "name", f"path-{path}", "netns", str(kit.namespace.pid)]
            operators.run(["ip", "link", "add", f"kit-{path}", "type", "veth", *peer])
            net = f"10.64.{10 + number}"
            _ip(operators, f"address add {net}.1/24 dev kit-{path}", f"link set kit-{path} up")
            _ip(
                kit.namespace,
                f"address add {net}.2/24 dev path-{path}",
                f"link set path-{path} up",
                f"route add default via {net}.1 dev path-{path} metric {700 + number}",
            )
        hub_key = hub.make_key()
        hub.start(stack, ["wireguard-go", "-f", "wg-tandem"], "tunnel.log")
        awaited(lambda: "wg-tandem" in hub.wg("show", "interfaces"), lambda: hub.said("tunnel.log"), 60)
        hub.wg("set", "wg-tandem", "private-key", str(hub.folder / "wireguard.key"), "listen-port", str(HUB_PORT))
        hub.wg("set", "wg-tandem", "peer", kit.make_key(), "allowed-ips", f"{KIT_INSIDE}/32")
        _ip(hub.namespace, f"address add {HUB_INSIDE}/16 dev wg-tandem", "link set wg-tandem mtu 1280 up")
        hub.start(stack, [sys.executable, "-c", ECHO], "echo.log")
        awaited(lambda: "ready" in hub.said("echo.log"), lambda: hub.said("echo.log"), 60)
        kit.enrol(hub_key)
        kit.run_tunnel(stack)
        yield Tunnel(operators, hub, kit)


def _ip(space: Namespace, *lines: str) -> None:
    space.run(["ip", "-batch", "-"], "".join(f"{line}\n" for line in lines))
