"""The coupled congestion controllers (``server/congestion``): loaded into the kernel and removed by bpftool, which is called as a program.

They belong to no process: once registered they stay until they are unregistered. A connection that uses one when it is removed keeps it
to its end; a new one cannot choose it any more."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tandem.mptcp_abi import COUPLED, LOADED, read_note
from tandem_server.durable import write_whole

OBJECT = Path("/usr/lib/tandem/coupled.bpf.o")
"""Where the role installs the object; ``TANDEM_CONGESTION`` in the environment names another."""

_MAPS = {f"tandem_{name}": name for name in COUPLED}
"""The names of our BPF maps, which the kernel cuts at 15 characters, and of their controllers: what else is loaded is not ours."""
_AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
_BTF = Path("/sys/kernel/btf/vmlinux")
_TOOL_S = 60.0
_KERNEL_SAYS = "journalctl -k says what the kernel thinks of it"
_IN_USE = "BPF_STRUCT_OPS_STATE_INUSE"


class CongestionError(RuntimeError):
    """The controllers cannot be loaded or removed here: one line, with a hint."""


@dataclass(frozen=True, slots=True)
class Status:
    """``loaded``: of ``COUPLED``, those the kernel has. ``object_sha256``: of what was loaded; None when nothing was, or not by this
    command. ``refusal``: why this machine cannot load them; None when it can."""

    loaded: tuple[str, ...]
    object_sha256: str | None
    refusal: str | None


def object_file() -> Path:
    """The object that is loaded when none is named."""
    return Path(os.environ.get("TANDEM_CONGESTION") or OBJECT)


def status(file: Path) -> Status:
    """What is there; needs no privileges."""
    available = set(_AVAILABLE.read_text().split())
    note = read_note()
    loaded = tuple(name for name in COUPLED if name in available)
    return Status(loaded, note["object_sha256"] if note and loaded else None, refusal(file))


def refusal(file: Path, btf: Path = _BTF) -> str | None:
    """Why ``file`` cannot be loaded on this machine, by what is missing; None when nothing is."""
    if not btf.exists():
        return (
            f"this kernel ({os.uname().release}) has no type information ({btf}), so that no BPF object finds its places; hint: "
            "Debian's and Ubuntu's kernels have it, Raspberry Pi OS's do not"
        )
    if _bpftool() is None:
        return (
            "bpftool not found; hint: apt-get install bpftool (on Ubuntu: linux-tools-common and linux-tools-generic)"
        )
    if not file.is_file():
        return (
            f"{file}: not built; hint: make -C server/congestion (needs clang and libbpf-dev), or the role congestion"
        )
    return None


def check(file: Path) -> None:
    """CongestionError unless ``load`` has what it needs and would not meet what is loaded already."""
    if (why := refusal(file)) is not None:
        raise CongestionError(why)
    if registered():
        raise CongestionError("the controllers are loaded already; hint: tandem-server congestion unload")
    if taken := sorted(set(COUPLED) & set(_AVAILABLE.read_text().split())):
        raise CongestionError(
            f"this kernel has {', '.join(taken)} of its own; hint: choose those, nothing needs to be loaded"
        )


def load(file: Path) -> str:
    """Register the controllers of the object and note it; its SHA-256. All or none: CongestionError."""
    check(file)
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    try:
        _call("struct_ops", "register", str(file))
        missing = set(COUPLED) - set(registered())
        if missing:
            raise CongestionError(f"{file}: has no {', '.join(sorted(missing))}; hint: build it again")
        _note(digest)
    except (CongestionError, OSError):
        unload()
        raise
    return digest


def unload() -> tuple[str, ...]:
    """Remove what is ours, nothing else; the names of what was there. CongestionError when something stays."""
    found = registered()
    LOADED.unlink(missing_ok=True)  # first: it never claims what is gone
    said = []
    for number in found.values():
        try:
            _call("struct_ops", "unregister", "id", str(number))
        except CongestionError as error:
            said.append(str(error))  # another may have removed it meanwhile: what counts is what stays
    if said and registered():
        raise CongestionError(said[0])
    return tuple(found)


def registered() -> dict[str, int]:
    """Of ``COUPLED`` those that are registered as ours, with the number of their map. CongestionError.

    A map that was unregistered stays in the kernel's list while a connection has the controller: such a one is not registered."""
    maps = json.loads(_call("struct_ops", "show") or "[]")
    ours = [(_MAPS[one["name"]], int(one["id"])) for one in maps if one.get("name") in _MAPS]
    return {name: number for name, number in ours if _IN_USE in _dumped(number)}


def _dumped(number: int) -> str:
    try:
        return _call("struct_ops", "dump", "id", str(number))
    except CongestionError:
        return ""  # gone meanwhile


def _note(digest: str) -> None:
    LOADED.parent.mkdir(mode=0o755, exist_ok=True)
    told = json.dumps({"controllers": COUPLED, "object_sha256": digest}) + "\n"
    write_whole(LOADED, told.encode(), 0o644)  # the endpoint's account reads it


def _bpftool() -> str | None:
    return shutil.which("bpftool", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")


def _call(*words: str) -> str:
    program = _bpftool()
    if program is None:
        raise CongestionError("bpftool not found; hint: apt-get install bpftool")
    if os.geteuid() != 0:
        raise CongestionError(
            "only root loads and removes BPF programs; hint: sudo, or systemctl start tandem-congestion"
        )
    command = [program, "-j", *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TOOL_S, check=False)
    except subprocess.TimeoutExpired:
        raise CongestionError(
            f"bpftool {' '.join(words)}: no answer within {_TOOL_S:g} s; hint: {_KERNEL_SAYS}"
        ) from None
    if done.returncode != 0 or done.stdout.startswith('{"error":'):
        raise CongestionError(f"bpftool {' '.join(words)}: {_last(done.stderr or done.stdout)}; hint: {_KERNEL_SAYS}")
    return done.stdout


def _last(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "failed without a word")
