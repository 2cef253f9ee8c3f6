"""What the kernel that runs does, against what this program takes for granted of it: each thing tried, between two network namespaces of
this test's own, on the code that measures with.

    client 10.98.1.2 wan0 ── srv0 ┐
           10.98.2.2 wan1 ── srv1 ┴ server 10.98.0.1

Needs root (CAP_NET_ADMIN, CAP_SYS_ADMIN); touches nothing outside of the two, and on the v0.94 kernel, whose sysctls are global, changes
none of them.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path as File
from typing import TypeVar

from tandem.mptcp import kernels, sockets
from tandem.mptcp.iproute import IpError, ip
from tandem.mptcp.paths import Path, Paths
from tandem.mptcp_abi import v094
from tandem.mptcp_abi.reader import ConnectionSample, Reader
from tandem.mptcp_abi.v094 import in_force

T = TypeVar("T")
SERVER = "10.98.0.1"
PATHS = (Path("a", "wan0", "10.98.1.1"), Path("b", "wan1", "10.98.2.1"))
ADDRESSES = ("10.98.1.2", "10.98.2.2")
PAYLOAD_BYTES = 300_000
PATIENCE_S = 20.0
"""For what the kernel does by itself; it may be emulated, and slow."""
_NEWNET = 0x40000000
_FOLDER = File("/run/netns")


@dataclass(frozen=True, slots=True)
class Row:
    """One thing that was tried. ``found`` says what went wrong where it could not be tried."""

    name: str
    expected: str
    found: str
    ok: bool


class _Space:
    def __init__(self, name: str) -> None:
        self.name = f"tandem-self-{os.getpid()}-{name}"

    def __enter__(self) -> _Space:
        ip("netns", "add", self.name)
        self.ip("link", "set", "lo", "up")
        return self

    def __exit__(self, *_: object) -> None:
        ip("netns", "delete", self.name)

    def ip(self, *words: str) -> None:
        ip("-n", self.name, *words)

    def inside(self, action: Callable[[], T]) -> T:
        """``action`` by a thread that is in here: its sockets stay here. What it raises is raised."""
        outcome: list[T] = []
        errors: list[BaseException] = []

        def go() -> None:
            try:
                with (_FOLDER / self.name).open() as file:
                    if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), _NEWNET) != 0:
                        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
                outcome.append(action())
            except BaseException as error:  # noqa: BLE001  raised below
                errors.append(error)

        thread = threading.Thread(target=go, name=self.name)
        thread.start()
        thread.join()
        if errors:
            raise errors[0]
        return outcome[0]


@dataclass(frozen=True, slots=True)
class _Pair:
    """An open connection: ``client`` reads what ``send`` has the server send."""

    client: socket.socket
    server: socket.socket
    reader: Reader

    def send(self, count: int) -> int:
        """How many of so many bytes arrived."""
        sender = threading.Thread(target=self.server.sendall, args=(bytes(count),), daemon=True)
        sender.start()
        came = 0
        while came < count and (chunk := self.client.recv(1 << 16)):
            came += len(chunk)
        sender.join(PATIENCE_S)
        return came


class SelfTest:
    """``rows`` runs everything once. IpError when not even the namespaces can be made."""

    def __init__(self) -> None:
        self._kernel = kernels.here()
        self._old = v094.present()
        self._ports = itertools.count(40_000)

    def rows(self) -> Iterator[Row]:
        """What was tried, one by one, as it is found."""
        with ExitStack() as held:
            self._client, self._server = held.enter_context(_Space("client")), held.enter_context(_Space("server"))
            self._wire()
            self._paths = Paths(PATHS)
            for name, expected, trial in self._trials():
                try:
                    ok, found = trial()
                except (OSError, IpError, RuntimeError, ValueError) as error:
                    ok, found = False, f"{type(error).__name__}: {' '.join(str(error).split())}"
                yield Row(name, expected, found, ok)

    def _wire(self) -> None:
        self._server.ip("address", "add", f"{SERVER}/32", "dev", "lo")
        for number, path in enumerate(PATHS):
            near, far = str(path.interface), f"srv{number}"
            peer = ("peer", "name", far, "netns", self._server.name)
            self._client.ip("link", "add", near, "type", "veth", *peer)
            # Not of global scope: fullmesh would tell of it, and each address told is another subflow.
            self._server.ip("address", "add", f"{path.gateway}/24", "dev", far, "scope", "host")
            self._client.ip("address", "add", f"{ADDRESSES[number]}/24", "dev", near)
            self._server.ip("link", "set", far, "up")
            self._client.ip("link", "set", near, "up")

    def _trials(self) -> Iterator[tuple[str, str, Callable[[], tuple[bool, str]]]]:
        old = self._old
        yield "kernel", "one with Multipath TCP", self._which
        yield "scheduler", "minsrtt, roundrobin, redundant …" if old else "stock, or one loaded", self._scheduler
        yield "controllers", "lia, olia and balia" if old else "cubic or reno", self._controllers
        if old:
            yield "sysctls in a namespace", "hidden; scheduler and path manager told by a connection", self._hidden
        yield "plain TCP", "no Multipath TCP, also where all sockets have it", self._plain
        yield "paths", "two up, their addresses known to the path manager", self._two_paths
        yield "connection", "two subflows, the primary path's first", self._two_subflows
        yield "before the first byte", "no time since the last one, a round trip of the handshake", self._before
        yield "bytes", f"{PAYLOAD_BYTES} received, the subflows' sum no less", self._bytes
        yield "token", "known", self._token
        if old:
            yield "connections' file", "the connection with two subflows", self._file
            yield "options 43 and 44", "scheduler and path manager fullmesh", self._options
        yield "counters", "MPCapableSYNTX and MPJoinSynTx count", self._counters
        yield "controller", "reno on every subflow of the sender", lambda: self._on_every("reno")
        for name in ("lia", "olia", "balia"):
            if self._has(name):
                yield f"controller {name}", "on every subflow of the sender", partial(self._on_every, name)
        yield "endpoint made anew", "the old subflow ends, another begins", self._renew
        yield "address lost and back", "another subflow from it", self._lost
        yield "one path", "a path that was taken away has no subflow", self._one_path
        yield "orders of single subflows", "refused" if old else "accepted", self._orders
        yield "order of backup", "refused" if old else "accepted", self._backup

    # --- what is tried ------------------------------------------------------------------------------------------------

    def _which(self) -> tuple[bool, str]:
        release = kernels.release(File("/"))
        with closing(self._client.inside(lambda: self._kernel.open_socket(socket.AF_INET, multipath=True))):
            return True, f"Linux {release}, {self._kernel.name}, version {self._kernel.protocol}"

    def _scheduler(self) -> tuple[bool, str]:
        now = self._kernel.scheduler()
        # Before Linux 6.8 the stock kernel has one, and no sysctl that says so.
        return now is not None or not self._old, f"{now}; can be had: {', '.join(self._kernel.schedulers()) or 'none'}"

    def _controllers(self) -> tuple[bool, str]:
        there = [name for name in ("cubic", "reno", "lia", "olia", "balia", "wvegas") if self._has(name)]
        wanted = {"lia", "olia", "balia"} if self._old else set()
        return bool(there) and wanted <= set(there), ", ".join(there) or "none"

    def _has(self, name: str) -> bool:
        # A socket of TCP: one of Multipath TCP takes any name until it has a subflow, on the stock kernel.
        with self._client.inside(lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as tried:
            try:
                tried.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
            except OSError:
                return False
        return True

    def _hidden(self) -> tuple[bool, str]:
        hidden = not self._client.inside((File("/") / v094.ENABLED).exists)
        # fullmesh knows an address half a second later
        settings = _awaited(lambda: self._client.inside(in_force)) or {}
        return hidden and {
            "scheduler",
            "path_manager",
        } <= settings.keys(), f"{'hidden' if hidden else 'shown'}; {settings or 'nothing told'}"

    def _plain(self) -> tuple[bool, str]:
        with self._connected("tcp") as pair:
            pair.send(1000)
            sample = pair.reader.read()
            return (
                sample.mptcp is None and not sample.fallback,
                f"{len(sample.subflows)} connection, fallback {sample.fallback}",
            )

    def _two_paths(self) -> tuple[bool, str]:
        self._client.inside(self._paths.apply)
        states = {name: status.state for name, status in self._paths.statuses.items()}
        known = ", ".join(sorted(e.address for e in self._client.inside(self._paths.manager.endpoints).values()))
        return set(states.values()) == {"up"} and known == ", ".join(ADDRESSES), f"{states}; {known or 'none known'}"

    def _two_subflows(self) -> tuple[bool, str]:
        with self._joined() as pair:
            sample = pair.reader.read()
            ends = [f"{s.id} {s.local.host if s.local else '?'}" for s in sample.subflows]
            return ends == [f"{n} {address}" for n, address in enumerate(ADDRESSES, 1)], ", ".join(ends)

    def _before(self) -> tuple[bool, str]:
        with self._connected("mptcp") as pair:
            sample = pair.reader.read()
            since = None if sample.mptcp is None else sample.mptcp.last_data_recv_ms
            rtt = sample.subflows[0].tcp.rtt_us if sample.subflows else None
            return (since is None or since < 1000 * PATIENCE_S) and rtt is not None, f"{since} ms; round trip {rtt} µs"

    def _bytes(self) -> tuple[bool, str]:
        with self._joined() as pair:
            began, parts_began = _received(pair.reader.read())
            pair.send(PAYLOAD_BYTES)
            whole, parts = _received(pair.reader.read())
            carried = sum(parts) - sum(parts_began)
            detail = f"{'the whole not told' if whole is None or began is None else whole - began}, subflows {' + '.join(map(str, parts))}"
            # Linux 6.1 tells of the subflows alone; v0.94's count of the whole is taken for nothing.
            right = self._old or whole is None or began is None or whole - began == PAYLOAD_BYTES
            return right and carried >= PAYLOAD_BYTES, detail

    def _token(self) -> tuple[bool, str]:
        with self._connected("mptcp") as pair:
            sample = self._client.inside(pair.reader.read)
            token = None if sample.mptcp is None else sample.mptcp.token
            return token is not None, "none" if token is None else f"{token:08x}"

    def _file(self) -> tuple[bool, str]:
        with self._joined() as pair:
            text = self._client.inside((File("/") / v094.FOLDER / "mptcp").read_text)
            inode = os.fstat(pair.client.fileno()).st_ino
            rows = [c for c in v094.parse_connections(text) if c.inode == inode]
            return [row.subflows for row in rows] == [2], f"{len(rows)} line; ns {[row.subflows for row in rows]}"

    def _options(self) -> tuple[bool, str]:
        with self._joined() as pair:
            settings = self._kernel.settings(pair.client)
            return settings["path_manager"] == "fullmesh" and bool(settings["scheduler"]), str(settings)

    def _counters(self) -> tuple[bool, str]:
        before = self._client.inside(self._kernel.counters)
        with self._joined():
            after = self._client.inside(self._kernel.counters)
        names = ("MPCapableSYNTX", "MPJoinSynTx") if "MPJoinSynTx" in after else ("MPCapableSYNTX", "MPJoinSynAckRx")
        grown = {name: after.get(name, 0) - before.get(name, 0) for name in names}
        return all(grown.values()), ", ".join(f"{name} +{count}" for name, count in grown.items())

    def _on_every(self, name: str) -> tuple[bool, str]:
        with self._joined(controller=name) as pair:
            port = pair.server.getsockname()[1]
            shown = ip("netns", "exec", self._server.name, "ss", "-tinH", "state", "established", f"sport = :{port}")
            found = re.findall(r"^\s+.*?\b(cubic|reno|bbr|lia|olia|balia|wvegas)\b", shown, re.MULTILINE)
            return len(found) >= 2 and set(found) == {name}, ", ".join(found) or "ss lists none"

    def _renew(self) -> tuple[bool, str]:
        with self._joined() as pair:
            had = _ends(pair.reader.read())[ADDRESSES[1]]
            self._client.inside(lambda: self._paths.renew("b"))
            now = _awaited(lambda: _other(pair, had))
            return now is not None, f"port {had} became {now}"

    def _lost(self) -> tuple[bool, str]:
        with self._joined() as pair:
            had = _ends(pair.reader.read())[ADDRESSES[1]]
            self._client.ip("address", "delete", f"{ADDRESSES[1]}/24", "dev", "wan1")
            self._client.inside(self._paths.check)
            self._client.ip("address", "add", f"{ADDRESSES[1]}/24", "dev", "wan1")
            self._client.inside(self._paths.check)
            now = _awaited(lambda: _other(pair, had))
            return now is not None, f"port {had} became {now}"

    def _one_path(self) -> tuple[bool, str]:
        self._paths.suspended.request({"b"})
        self._client.inside(self._paths.check)
        try:
            with self._connected("mptcp") as pair:
                pair.send(PAYLOAD_BYTES)
                ends = _ends(pair.reader.read())
                return set(ends) == {ADDRESSES[0]}, ", ".join(ends)
        finally:
            self._paths.suspended.request(set())
            self._client.inside(self._paths.check)

    def _orders(self) -> tuple[bool, str]:
        try:
            options = sockets.Options(by_orders=True)
            self._client.inside(lambda: sockets.make("mptcp", sockets.Source(), options)).close()
        except sockets.UnsupportedError as error:
            return self._old, f"refused: {error}"
        return not self._old, "accepted"

    def _backup(self) -> tuple[bool, str]:
        number, manager = self._paths.number("b"), self._paths.manager
        try:
            for backup in (True, False):
                self._client.inside(partial(manager.set_backup, number, backup))
        except IpError as error:
            return self._old, f"refused: {error}"
        return not self._old, "accepted"

    # --- connections --------------------------------------------------------------------------------------------------

    @contextmanager
    def _connected(self, kind: sockets.Kind, controller: str | None = None) -> Iterator[_Pair]:
        """Over path a; ``controller``: the sender's, set where this kernel wants it."""
        port = next(self._ports)
        with ExitStack() as held:
            listener = held.enter_context(
                closing(self._server.inside(lambda: self._kernel.open_socket(socket.AF_INET, multipath=True)))
            )
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if controller is not None:
                listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, controller.encode())
            listener.bind((SERVER, port))
            listener.listen(1)
            listener.settimeout(PATIENCE_S)
            source = sockets.Source("wan0", ADDRESSES[0])
            client = self._client.inside(lambda: sockets.connect(kind, (SERVER, port), source, PATIENCE_S)).socket
            held.enter_context(closing(client))
            client.settimeout(PATIENCE_S)
            server = held.enter_context(closing(listener.accept()[0]))
            server.settimeout(PATIENCE_S)
            yield _Pair(client, server, self._client.inside(lambda: Reader(client)))

    @contextmanager
    def _joined(self, controller: str | None = None) -> Iterator[_Pair]:
        """One of Multipath TCP, once both paths carry; TimeoutError when they do not."""
        with self._connected("mptcp", controller) as pair:
            pair.send(1000)  # the second begins once something is acknowledged
            if _awaited(lambda: sum(s.established for s in pair.reader.read().subflows) >= 2) is None:
                raise TimeoutError(f"no second subflow within {PATIENCE_S:g} s")
            yield pair


def _received(sample: ConnectionSample) -> tuple[int | None, list[int]]:
    whole = None if sample.mptcp is None else sample.mptcp.bytes_received
    return whole, [s.tcp.bytes_received or 0 for s in sample.subflows]


def _ends(sample: ConnectionSample) -> dict[str, int]:
    """Local port of each established subflow, by its local address."""
    return {s.local.host: s.local.port for s in sample.subflows if s.local is not None and s.established}


def _other(pair: _Pair, had: int) -> int | None:
    now = _ends(pair.reader.read()).get(ADDRESSES[1])
    return None if now == had else now


def _awaited(condition: Callable[[], T]) -> T | None:
    """What it gives once that is true; None when it never is."""
    until = time.monotonic() + PATIENCE_S
    while not (met := condition()):
        if time.monotonic() > until:
            return None
        time.sleep(0.05)
    return met
