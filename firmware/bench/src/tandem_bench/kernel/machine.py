"""One virtual machine for one command: boots, runs it, gives back exit status and output; nothing is left behind.

The machine has a small Debian or Ubuntu of this machine's release (``tests/system/vm/build.py`` makes it, of packages); folders of this
machine are seen in it read-only under the same paths, so what runs there is what runs here. It has no network to the outside.
"""

from __future__ import annotations

import functools
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tandem_bench import BenchError

REPOSITORY = Path(__file__).resolve().parents[5]
FOLDER = REPOSITORY / "build" / "vm"
BUILDER = REPOSITORY / "tests" / "system" / "vm" / "build.py"
ACCELERATOR = "TANDEM_VM_ACCEL"
"""Environment variable: ``tcg`` (emulation) or ``kvm``; without it KVM where it works."""
TRIED_S = 20.0
"""A kernel that starts by KVM has found that it has no disk after a second."""
BESIDE = ("setpriv", "--pdeathsig", "KILL", "nice", "-n", "5")
"""Before the emulator: it ends with what started it, and what else runs comes first."""
_PC = ("-machine", "q35", "-cpu", "max", "-smp", "2", "-nodefaults", "-display", "none", "-no-reboot")
_PASSED = ("PYTHONPATH", "TANDEM_LINK", "TANDEM_INFLUXD", "TANDEM_CONGESTION")


class VmError(BenchError):
    """No machine, or it did not come to an end; the message is one line, then the end of its console."""

    def __init__(self, text: str, console: str = "") -> None:
        super().__init__(text + (f"\n--- console\n{console[-3000:].strip()}" if console.strip() else ""))
        self.console = console


class OverdueError(VmError):
    """It did not come to an end in its time, and was killed."""


@dataclass(frozen=True)
class Done:
    """How the command ended. ``files``: what it left in its folder; ``boot_s``, ``command_s``: measured here, wall clock;
    ``cpu_s``: processor time of the emulator; ``resident_bytes``: the most memory that it had here; ``console``: what the kernel said."""

    exit: int
    stdout: str
    stderr: str
    files: Mapping[str, bytes]
    boot_s: float
    command_s: float
    cpu_s: float
    resident_bytes: int = 0
    console: str = ""


def lacks() -> str | None:
    """Why there can be no machine here; None when there can, or could once it is made."""
    if platform.machine() != "x86_64":
        return f"the machine is x86-64, this one {platform.machine()}"
    if Path(sys.base_prefix) != Path("/usr"):
        return f"Python is {sys.base_prefix}'s and not the distribution's, which is the one in the machine"
    if shutil.which("qemu-system-x86_64") is None:
        return "qemu-system-x86_64 not found; hint: apt-get install qemu-system-x86"
    return None


@functools.cache
def accelerator(made: Path) -> str:
    """For QEMU: KVM where this kernel starts and ends by it, else emulation. That /dev/kvm is there says little: a machine that is virtual
    itself may refuse a guest some registers, or never start it."""
    chosen = os.environ.get(ACCELERATOR)
    if chosen is None:
        chosen = "kvm" if os.access("/dev/kvm", os.R_OK | os.W_OK) and _starts_by_kvm(made) else "tcg"
    return {"kvm": "kvm", "tcg": "tcg,thread=multi"}[chosen]


def _starts_by_kvm(made: Path) -> bool:
    """Without a disk ``init.sh`` says so on the console and switches off."""
    argv: list[str | Path] = [
        "qemu-system-x86_64", "-accel", "kvm", *_PC, "-m", "512", "-kernel", made / "vmlinuz", "-initrd", made / "initramfs",
        "-append", "console=ttyS0 quiet panic=-1", "-serial", "stdio",
    ]  # fmt: skip
    try:
        tried = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=TRIED_S, check=False)
    except subprocess.TimeoutExpired:
        return False
    return tried.returncode == 0 and b"no root" in tried.stdout


def built() -> Path:
    """The folder with kernel, initramfs and root; built now when it is not there. VmError with the hint."""
    if not BUILDER.exists():
        raise VmError(f"{BUILDER} not found; hint: run it from a checkout")
    done = subprocess.run(["/usr/bin/python3", str(BUILDER), str(FOLDER)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise VmError(done.stderr.strip() or "the machine cannot be built")
    return Path(done.stdout.strip())


def run(
    command: Sequence[str],
    files: Mapping[str, str | bytes] | None = None,
    *,
    append: str = "",
    timeout_s: float = 280.0,
    memory_mb: int = 1536,
    qemu: Sequence[str] = (),
    root: Path | None = None,
    initrd: Path | None = None,
    kernel: Path | None = None,
) -> Done:
    """Run ``command`` in a fresh machine, as root, in a folder that holds ``files`` (name → content).

    ``{folder}`` in the command's words is that folder; ``python3`` is this Python with Tandem's packages. ``append`` is
    added to the kernel's command line, ``qemu`` to the emulator's (a network, another time). ``root``: a
    raw disk in place of the one that forgets, and keeps what was synced when the command ended; ``initrd``: what goes before it.
    ``kernel``: an image in place of the distribution's own. VmError when there is no
    machine, OverdueError when it takes longer than ``timeout_s``; it is killed then, whatever is raised.
    """
    made = built()
    program = shutil.which("qemu-system-x86_64")
    if program is None:
        raise VmError("qemu-system-x86_64 not found; hint: apt-get install qemu-system-x86")
    with tempfile.TemporaryDirectory(prefix="tandem-vm-") as name:
        share = Path(name)
        for file, content in (files or {}).items():
            (share / file).write_bytes(content.encode() if isinstance(content, str) else content)
        given = {file.name for file in share.iterdir()}
        shares = _shares()
        (share / "shares").write_text("".join(f"{tag} {folder}\n" for tag, folder in shares.items()))
        (share / "command").write_text(_script(command))
        began_s, cpu_s = time.monotonic(), _children_cpu_s()
        process = subprocess.Popen(
            [
                *_qemu(program, made, share, shares, append, memory_mb, root, initrd),
                *(["-kernel", str(kernel)] if kernel else []),
                *qemu,
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        resident = 0
        try:
            boot_s = _await(process, share / "booted", began_s, timeout_s)
            while True:
                resident = max(resident, _resident_bytes(process.pid))
                left_s = max(0.0, began_s + timeout_s - time.monotonic())
                try:
                    process.wait(min(left_s, 2.0))
                    break
                except subprocess.TimeoutExpired:
                    if left_s == 0:
                        raise
        except subprocess.TimeoutExpired:
            said = f"the machine did not end within {timeout_s:g} s{_last_words(share)}"
            raise OverdueError(said, _console(share)) from None
        finally:
            process.kill()
            _, complaint = process.communicate()
        if not (share / "exit").exists():
            raise VmError(
                f"the machine ended before its command did: {complaint.strip()}{_last_words(share)}", _console(share)
            )
        ours = given | {"shares", "command", "exit", "booted", "stdout", "stderr", "console"}
        return Done(
            exit=int((share / "exit").read_text()),
            stdout=(share / "stdout").read_text(errors="replace"),
            stderr=(share / "stderr").read_text(errors="replace"),
            files={f.name: f.read_bytes() for f in share.iterdir() if f.is_file() and f.name not in ours},
            boot_s=boot_s,
            command_s=time.monotonic() - began_s - boot_s,
            cpu_s=_children_cpu_s() - cpu_s,
            resident_bytes=resident,
            console=_console(share),
        )


def _resident_bytes(pid: int) -> int:
    """Of the emulator, which is ``BESIDE``'s own process after its exec; 0 once it has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    told = status.partition("VmHWM:")[2].split()
    return int(told[0]) * 1024 if told else 0


def _children_cpu_s() -> float:
    times = os.times()
    return times.children_user + times.children_system


def _shares() -> dict[str, Path]:
    """Tag → folder: the checkout and, where it lies elsewhere, the Python environment and the programs that were named."""
    folders = [REPOSITORY, Path(sys.prefix)]
    folders += [Path(os.environ[name]).parent for name in ("TANDEM_LINK", "TANDEM_INFLUXD") if name in os.environ]
    kept: list[Path] = []
    for folder in folders:
        if not any(folder.is_relative_to(other) for other in (*kept, Path("/usr"))):
            kept.append(folder)
    return {f"host{number}": folder for number, folder in enumerate(kept)}


def _script(command: Sequence[str]) -> str:
    passed = {name: os.environ[name] for name in _PASSED if name in os.environ}
    words = [word.replace("{folder}", "/run/vm") for word in command]
    exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in passed.items())
    return f"{exports}PATH={shlex.quote(str(Path(sys.prefix) / 'bin'))}:$PATH\nexec {shlex.join(words)}\n"


def _qemu(
    program: str,
    made: Path,
    share: Path,
    shares: Mapping[str, Path],
    append: str,
    memory_mb: int,
    root: Path | None,
    initrd: Path | None,
) -> list[str]:
    mounts = [f"local,path={share},mount_tag=share,security_model=none,multidevs=remap"]
    mounts += [
        f"local,path={folder},mount_tag={tag},security_model=none,readonly=on,multidevs=remap"
        for tag, folder in shares.items()
    ]
    return [
        *BESIDE, program, "-accel", accelerator(made), *_PC, "-m", str(memory_mb),
        "-kernel", str(made / "vmlinuz"), "-initrd", str(initrd or made / "initramfs"),
        "-append", f"console=ttyS0 quiet net.ifnames=0 panic=-1 mitigations=off {append}",
        "-drive", f"file={root or made / 'root.ext4'},format=raw,if=virtio,snapshot={'off' if root else 'on'}",
        *(word for mount in mounts for word in ("-virtfs", mount)),
        "-device", "virtio-rng-pci", "-serial", f"file:{share / 'console'}",
    ]  # fmt: skip


def _await(process: subprocess.Popen[str], file: Path, began_s: float, timeout_s: float) -> float:
    """Seconds until ``file`` is there; at once when the machine ends before."""
    while not file.exists() and process.poll() is None:
        if time.monotonic() - began_s > timeout_s:
            raise subprocess.TimeoutExpired("boot", timeout_s)
        time.sleep(0.1)
    return time.monotonic() - began_s


def _console(share: Path) -> str:
    file = share / "console"
    return file.read_text(errors="replace") if file.exists() else ""


def _last_words(share: Path) -> str:
    """The end of what the command said."""
    told = ""
    for name in ("stdout", "stderr"):
        file = share / name
        text = file.read_text(errors="replace")[-3000:] if file.exists() else ""
        told += f"\n--- {name}\n{text.strip()}" if text.strip() else ""
    return told
