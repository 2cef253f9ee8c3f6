"""A resolver as an operator runs one: dnsmasq, knowing the server's names and nothing else."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from ipaddress import IPv4Address

from tandem_bench.topology.namespace import Namespace
from tandem_bench.topology.requirements import MachineError


class Resolver:
    """dnsmasq in one namespace, from ``start`` to ``stop``."""

    def __init__(self, namespace: Namespace, address: IPv4Address, names: Mapping[str, IPv4Address]) -> None:
        """``address``: where it listens, port 53; ``names``: what it answers. Other names are refused."""
        self._namespace = namespace
        self._argv = [
            "dnsmasq",
            "--keep-in-foreground",
            "--conf-file=/dev/null",
            "--pid-file=",
            "--no-resolv",
            "--no-hosts",
            "--log-facility=-",
            "--bind-interfaces",
            f"--listen-address={address}",
            *(f"--host-record={name},{host}" for name, host in names.items()),
            *(f"--local=/{domain}/" for domain in sorted({name.split(".", 1)[1] for name in names})),
        ]
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start it and wait until it answers; MachineError with its own line when it does not start."""
        self._process = subprocess.Popen(
            self._namespace.command(self._argv), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        assert self._process.stderr is not None  # noqa: S101 - opened as a pipe above
        last = "it ended without a word"
        for line in self._process.stderr:
            if "started, version" in line:
                # It says nothing more unless queries are logged, so the pipe cannot fill.
                return
            last = line.strip() or last
        self.stop()
        raise MachineError(f"the resolver of {self._namespace.name} does not start: {last}")

    def stop(self) -> None:
        """End it. Safe to call twice."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        process.wait()
        if process.stderr is not None:
            process.stderr.close()
