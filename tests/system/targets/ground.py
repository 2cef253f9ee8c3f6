"""Where the targets stand: one network to reach them for provisioning, one that is "the internet", keys, sources, a time server.

    control machine (this namespace, 10.98.0.1) ──lan── probe 10.98.0.2, server 10.98.0.3
    probe's operators (203.0.113.1, in the probe's machine) ──net── server 203.0.113.10, control machine 203.0.113.2

The lan is the office in which a kit is set up: it knows the way to the server, so that a probe can enrol before its modems are set up.
Needs root and a network namespace of its own.
"""

from __future__ import annotations

import contextlib
import functools
import http.server
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from support.ntp_server import ntp_server

CONTROL, PROBE, SERVER = "10.98.0.1", "10.98.0.2", "10.98.0.3"
OPERATORS, SERVER_PUBLIC = "203.0.113.1", "203.0.113.10"
SERVER_MOVED = "203.0.113.20"
"""Where the server may move to."""
SERVER_NAME = "server.tandem.test"
OFFICE = "203.0.113.2"
SOURCES_PORT, NTP_PORT = 8099, 123
USER = "tandem-admin"
Seed = dict[str, tuple[bytes, int]]
"""What a target has of its own before the playbook comes: path without leading slash → content, mode."""


class GroundError(RuntimeError):
    """This machine has no room for targets; one line with the mend."""


@dataclass(frozen=True)
class Ground:
    """``folder``: keys and what else a run leaves; ``sources``: what ``make.py`` made."""

    folder: Path
    sources: Path

    @property
    def key(self) -> Path:
        """The operator's private SSH key, made for this run."""
        return self.folder / "operator"

    @property
    def known_hosts(self) -> Path:
        """The targets' host keys, known before anybody connects."""
        return self.folder / "known_hosts"

    @property
    def mirror(self) -> str:
        """The package archive, as targets reach it."""
        return f"http://{CONTROL}:{SOURCES_PORT}/archive"

    @property
    def wheels(self) -> Path:
        """Python packages, on the control machine."""
        return self.sources / "wheels"

    def seed(self, name: str, address: str) -> Seed:
        """Host keys of the target ``name`` and the operator's key, as an image has them."""
        made = self.folder / f"host-{name}"
        if not made.exists():
            _keygen(made)
            public = made.with_suffix(".pub").read_text().split()[:2]
            with self.known_hosts.open("a") as known:
                known.write(f"{address} {' '.join(public)}\n")
        return {
            "etc/hostname": (f"{name}\n".encode(), 0o644),
            "etc/hosts": (f"127.0.0.1 localhost\n127.0.1.1 {name}\n".encode(), 0o644),
            "etc/ssh/ssh_host_ed25519_key": (made.read_bytes(), 0o600),
            "etc/ssh/ssh_host_ed25519_key.pub": (made.with_suffix(".pub").read_bytes(), 0o644),
            f"home/{USER}/.ssh/authorized_keys": (self.key.with_suffix(".pub").read_bytes(), 0o600),
        }

    def name_server(self, address: str) -> None:
        """From now on the resolver says ``address`` for the server's name."""
        self.names.write_text(f"{address} {SERVER_NAME}\n", encoding="ascii")
        if self.resolver.exists():
            os.kill(int(self.resolver.read_text()), signal.SIGHUP)

    @property
    def names(self) -> Path:
        """What the resolver knows, as lines of a hosts file."""
        return self.folder / "names"

    @property
    def resolver(self) -> Path:
        """The resolver's process, by its number; there while it runs."""
        return self.folder / "resolver.pid"

    def own_sources(self) -> Seed:
        """The archive as the system's own, where no playbook names one."""
        text = f"Types: deb\nURIs: {self.mirror}\nSuites: bookworm\nComponents: main\n"
        return {"etc/apt/sources.list.d/debian.sources": (text.encode(), 0o644)}

    def ssh_to(self, address: str, command: str) -> list[str | Path]:
        """The words that run ``command`` at a target as its operator, who has sudo. Host keys are verified."""
        options = [
            "BatchMode=yes",
            "ConnectTimeout=60",
            # A machine whose power went says no word of it.
            "ServerAliveInterval=15",
            "ServerAliveCountMax=8",
            f"UserKnownHostsFile={self.known_hosts}",
            "StrictHostKeyChecking=yes",
        ]
        argv = ["ssh", "-F", "none", "-i", self.key, *(word for option in options for word in ("-o", option))]
        return [*argv, f"{USER}@{address}", command]

    def ssh(self, address: str, command: str, timeout_s: float = 120.0) -> subprocess.CompletedProcess[str]:
        argv = self.ssh_to(address, command)
        return subprocess.run(
            argv, capture_output=True, text=True, timeout=timeout_s, check=False, stdin=subprocess.DEVNULL
        )


def run(*argv: str | Path, text: str = "") -> str:
    """A short program that must succeed; its stdout."""
    done = subprocess.run(argv, capture_output=True, text=True, input=text, check=False)
    if done.returncode != 0:
        raise GroundError(f"{argv[0]} {' '.join(map(str, argv[1:4]))} …: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def _keygen(file: Path) -> None:
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", file.name, "-f", file)


@contextlib.contextmanager
def ground(folder: Path, sources: Path) -> Iterator[Ground]:
    """The networks and the sources, from entering to leaving; keys that ``folder`` has already are used."""
    if os.geteuid() != 0:
        raise GroundError("targets need root; hint: ./kit test")
    if run("ip", "route", "show", "default"):
        raise GroundError("this network namespace leads outside; hint: unshare --net, as ./kit test does")
    made = Ground(folder, sources)
    if not made.key.exists():
        _keygen(made.key)
    lines = [
        "link add lan type bridge", f"address add {CONTROL}/24 dev lan", "link set lan up",
        "link add net type bridge", f"address add {OFFICE}/24 dev net", "link set net up",
    ]  # fmt: skip
    run("ip", "-batch", "-", text="\n".join(lines) + "\n")
    forwarding = run("sysctl", "-n", "net.ipv4.ip_forward").strip()
    try:
        run("sysctl", "-qw", "net.ipv4.ip_forward=1")
        with _sources(sources), _resolver(made), ntp_server(CONTROL, NTP_PORT):
            yield made
    finally:
        run("sysctl", "-qw", f"net.ipv4.ip_forward={forwarding}")
        run("ip", "-batch", "-", text="link del lan\nlink del net\n")


@contextlib.contextmanager
def tap(name: str, bridge: str) -> Iterator[str]:
    """A network card for a virtual machine, plugged into ``bridge``."""
    run("ip", "tuntap", "add", name, "mode", "tap")
    try:
        run("ip", "link", "set", name, "master", bridge, "up")
        yield name
    finally:
        run("ip", "link", "del", name)


class _Quiet(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def _resolver(ground: Ground) -> Iterator[None]:
    """The office's: it knows the server and nothing else."""
    ground.name_server(SERVER_PUBLIC)
    argv = [
        "dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", f"--pid-file={ground.resolver}", "--no-resolv", "--no-hosts",
        "--log-facility=-", "--bind-interfaces", f"--listen-address={CONTROL}", f"--addn-hosts={ground.names}", "--user=root",
    ]  # fmt: skip
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield
        finally:
            process.terminate()


@contextlib.contextmanager
def _sources(folder: Path) -> Iterator[None]:
    """The archive over HTTP, on the lan."""
    with http.server.ThreadingHTTPServer(
        (CONTROL, SOURCES_PORT), functools.partial(_Quiet, directory=str(folder))
    ) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()
