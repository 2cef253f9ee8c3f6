"""A target in a container (systemd-nspawn): this machine's kernel, a systemd of its own. For a server, which needs no hardware."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import MappingProxyType

from targets import ground
from targets.ground import CONTROL, OPERATORS, SERVER_PUBLIC, Ground, GroundError

WAIT_S = 60.0
STOP_S = 120.0
"""A collector sends what is left before it ends."""
USER_ID = 1000
LISTS = ("var/lib/apt/periodic/tandem-update-stamp", "etc/apt/sources.list.d")
"""By the times of these a play tells whether the package lists are old."""
ROOM = "3g"
"""Of memory, for what one target writes."""
QUIET = ("NetworkManager", "NetworkManager-wait-online", "systemd-timesyncd")
"""Services of a stock system that a container has from outside: its network and its clock."""


@contextmanager
def _namespace() -> Iterator[int]:
    """A process that holds a network namespace."""
    argv = ["unshare", "--net", "sh", "-c", "echo; exec sleep infinity"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as holder:
        try:
            assert holder.stdout is not None
            holder.stdout.readline()
            yield holder.pid
        finally:
            holder.kill()


@contextmanager
def server_cables(pid: int, address: str) -> Iterator[None]:
    """eth0: the internet, with the server's public address; eth1: the lan."""
    for bridge, card in (("net", "eth0"), ("lan", "eth1")):
        _cable(pid, f"{bridge}-server", card, bridge)
    _inside(pid, [f"address add {SERVER_PUBLIC}/24 dev eth0", f"address add {address}/24 dev eth1"], "eth0", "eth1")
    _inside(pid, [f"route add default via {OPERATORS} dev eth0"])
    yield
    _pull("net-server", "lan-server")


@contextmanager
def kit_cables(pid: int, address: str) -> Iterator[None]:
    """eth0: the lan; wwan0, wwan1: two operators without modems, which this namespace plays itself."""
    _cable(pid, "lan-kit", "eth0", "lan")
    _inside(pid, [f"address add {address}/24 dev eth0"], "eth0")
    for number, name in enumerate(("op-a", "op-b")):
        _cable(pid, name, f"wwan{number}", None)
        ground.run("ip", "address", "add", f"10.64.{number}.1/30", "dev", name)
        _inside(pid, [f"address add 10.64.{number}.2/30 dev wwan{number}"], f"wwan{number}")
        _inside(pid, [f"route add default via 10.64.{number}.1 dev wwan{number} metric {700 + number}"])
    ground.run("ip", "address", "add", f"{OPERATORS}/24", "dev", "net")
    yield
    ground.run("ip", "address", "del", f"{OPERATORS}/24", "dev", "net")
    _pull("lan-kit", "op-a", "op-b")


def _pull(*cables: str) -> None:
    ground.run("ip", "-batch", "-", text="".join(f"link del {cable}\n" for cable in cables))


def _cable(pid: int, outer: str, card: str, bridge: str | None) -> None:
    master = [] if bridge is None else ["master", bridge]
    ground.run("ip", "link", "add", outer, *master, "type", "veth", "peer", "name", card, "netns", str(pid))
    ground.run("ip", "link", "set", outer, "up")


def _inside(pid: int, lines: list[str], *cards: str) -> None:
    text = "\n".join([*lines, *(f"link set {card} up" for card in ("lo", *cards))]) + "\n"
    ground.run("nsenter", f"--net=/proc/{pid}/ns/net", "ip", "-batch", "-", text=text)


@contextmanager
def booted(
    ground: Ground,
    address: str,
    root: Path,
    cables: Callable[[int, str], AbstractContextManager[None]],
    devices: Mapping[str, Path] = MappingProxyType({}),
    answers: Callable[[], bool] | None = None,
    more: Sequence[str] = (),
) -> Iterator[None]:
    """``root`` is a container that is up and answers by SSH, until leaving, which shuts it down. ``cables``: what it is connected to;
    ``devices``: by their names in it, device files of this machine that it has too; ``answers``: whether it does, where it is not to be
    the operator's SSH that says so; ``more``: options of systemd-nspawn."""
    name = root.parent.name
    with _namespace() as pid, cables(pid, address):
        argv = [
            "systemd-nspawn", "--quiet", "--boot", "--register=no", "--keep-unit", f"--directory={root}",
            f"--machine={name}-{secrets.token_hex(4)}", f"--hostname={name}",
            f"--network-namespace-path=/proc/{pid}/ns/net", "--link-journal=no", "--resolv-conf=off", "--timezone=off",
            "--console=read-only", "--bind=/dev/net/tun", "--capability=CAP_NET_ADMIN,CAP_NET_RAW",
            *(f"--bind={there}:{here}" for here, there in devices.items()), *more,
        ]  # fmt: skip
        log = ground.folder / f"{name}.console"
        with log.open("ab") as console:
            # Sysctls of its network are its own.
            env = os.environ | {"SYSTEMD_NSPAWN_API_VFS_WRITABLE": "network"}
            process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=console, stderr=console, env=env)
        try:
            _await(answers or (lambda: ground.ssh(address, "true").returncode == 0), process, log)
            yield
        finally:
            process.terminate()  # nspawn hands it on as an orderly shutdown
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextmanager
def laid_out(
    ground: Ground, name: str, seed: Mapping[str, tuple[bytes, int]], layer: Path | None = None
) -> Iterator[Path]:
    """A root file system: the installed Debian's with ``seed`` in it, or with the ``layer`` that another target wrote above it. What is
    written lies in memory above it, in "upper" beside it, so that what a target writes and syncs costs no disk."""
    folder, below = ground.folder / name, ground.sources / "root"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={ROOM},mode=0755", "tmpfs", folder], check=True)
    try:
        for part in ("root", "upper", "work"):
            (folder / part).mkdir()
        if layer is not None:
            # Not as a layer below: a database that maps a file and then opens it for writing would go on reading what lies there.
            subprocess.run(["cp", "-a", f"{layer}/.", folder / "upper"], check=True)
        options = f"lowerdir={below},upperdir={folder / 'upper'},workdir={folder / 'work'}"
        subprocess.run(["mount", "-t", "overlay", "-o", options, "overlay", folder / "root"], check=True)
        try:
            if layer is None:
                _lay(seed, folder / "root")
            else:  # kept for days, its package lists are not older than on the day when they were fetched
                now_s = time.time()
                for name in LISTS:
                    os.utime(folder / "root" / name, (now_s, now_s))
            yield folder / "root"
        finally:
            subprocess.run(["umount", folder / "root"], check=True)
    finally:
        subprocess.run(["umount", folder], check=True)


def _lay(seed: Mapping[str, tuple[bytes, int]], root: Path) -> None:
    for path, (content, mode) in seed.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        file.chmod(mode)
    home = root / "home" / ground.USER
    for path in (home, *home.rglob("*")):
        os.chown(path, USER_ID, USER_ID)
    for unit in QUIET:
        (root / "etc/systemd/system" / f"{unit}.service").symlink_to("/dev/null")
    (root / "etc/resolv.conf").write_text(f"nameserver {CONTROL}\n", encoding="ascii")
    shutil.rmtree(root / "var/log/journal", ignore_errors=True)


def _await(answers: Callable[[], bool], process: subprocess.Popen[bytes], console: Path) -> None:
    began_s = time.monotonic()
    while not answers():
        if process.poll() is not None or time.monotonic() - began_s > WAIT_S:
            raise GroundError(
                f"the container does not answer within {WAIT_S:.0f} s\n{console.read_text(errors='replace')[-3000:]}"
            )
        time.sleep(0.2)
