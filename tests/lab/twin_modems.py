"""Two routing modems that are the same in everything (as two sticks of one model are): MAC, subnet, address, page; and a wire.

probe ── stick-a ── modem A (192.168.8.1, NAT) ── server; probe ── stick-b ── modem B (192.168.8.1, NAT) ── server; probe ── wire.
Built like ``two_paths``: no names, each namespace lives as long as its process.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support import rated_links
from support.two_paths import SERVER, Space

MAC = "0c:5b:8f:27:9a:64"
HOST, MODEM = "192.168.8.100", "192.168.8.1"
PUBLIC = {"a": "10.72.1.1", "b": "10.72.2.1", "wire": "10.73.0.1"}

PAGE = """
import http.server, sys
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = sys.argv[1].encode()
        self.send_response(200); self.send_header("Content-Length", str(len(body))); self.end_headers(); self.wfile.write(body)
    def log_message(self, *_): pass
server = http.server.HTTPServer(("192.168.8.1", 80), Page)
print("ready", flush=True)
server.serve_forever()
"""


class Twins:
    """The namespaces, wired; both sticks up with the same address, unless ``hosts`` gives them others."""

    def __init__(self, hosts: dict[str, str]) -> None:
        self.probe, self.server = Space(), Space()
        self.modems = {"a": Space(), "b": Space()}
        self.server.run(f"ip addr add {SERVER}/32 dev lo")
        for number, (name, modem) in enumerate(self.modems.items(), start=1):
            rated_links.join(modem.pid, "core", self.server.pid, f"core-{name}")
            self.server.run(f"ip addr add 10.72.{number}.2/24 dev core-{name} && ip link set core-{name} up")
            modem.run(f"ip addr add 10.72.{number}.1/24 dev core && ip link set core up")
            modem.run(f"ip route add default via 10.72.{number}.2; echo 1 >/proc/sys/net/ipv4/ip_forward")
            nat = "chain out { type nat hook postrouting priority 100; oifname core masquerade; }"
            modem.run(f"echo 'table ip nat {{ {nat}; }}' | nft -f -")
            self.plug(name, hosts[name])
        rated_links.join(self.probe.pid, "wire", self.server.pid, "wire-s")
        self.server.run("ip addr add 10.73.0.2/24 dev wire-s && ip link set wire-s up")
        self.probe.run("ip addr add 10.73.0.1/24 dev wire && ip link set wire up")

    def plug(self, name: str, host: str | None = HOST, interface: str | None = None) -> None:
        """The stick ``name`` is plugged in; ``host``: what DHCP gives."""
        interface = interface or f"stick-{name}"
        modem = self.modems[name]
        rated_links.join(modem.pid, "lan", self.probe.pid, interface, address=MAC)
        modem.run(f"ip addr add {MODEM}/24 dev lan && ip link set lan up")
        self.probe.run(f"ip link set {interface} up")
        if host is not None:
            self.probe.run(f"ip addr add {host}/24 dev {interface}")

    def unplug(self, name: str) -> None:
        """It is pulled out, wherever its interface is."""
        self.modems[name].run("ip link delete lan")

    @contextmanager
    def pages(self) -> Iterator[None]:
        """Each modem's page says which one it is."""
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        running = [
            subprocess.Popen([*m.enter, sys.executable, "-c", PAGE, f"modem {n}"], **pipes)
            for n, m in self.modems.items()
        ]
        try:
            for one in running:
                assert one.stdout is not None
                assert one.stdout.readline() == b"ready\n", one.stderr and one.stderr.read()
            yield
        finally:
            for one in running:
                one.kill()
                one.communicate()

    def namespaces(self) -> list[str]:
        """Names of NAT namespaces of this lab's probe."""
        inode = os.stat(f"/proc/{self.probe.pid}/ns/net").st_ino  # noqa: PTH116  as the module under test sees it
        folder = Path("/run/netns")
        return sorted(p.name for p in folder.glob(f"tandem-{inode}-*")) if folder.exists() else []

    def close(self) -> None:
        """Take all down, and what a failed test left."""
        for name in self.namespaces():
            subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)
        for space in (self.probe, self.server, *self.modems.values()):
            space.close()


@contextmanager
def twins(a: str = HOST, b: str = HOST) -> Iterator[Twins]:
    made = Twins({"a": a, "b": b})
    try:
        yield made
    finally:
        made.close()
