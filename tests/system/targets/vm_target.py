"""A target that is a machine of its own (QEMU): its own kernel, udev and USB, a disk that outlives power cuts."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from targets import ground
from targets.disk import Disk, Settled
from targets.ground import Ground, GroundError
from vm.machine import BESIDE, accelerator

REPOSITORY = Path(__file__).resolve().parents[3]
LAN_CARD, NET_CARD = "52:54:00:00:00:02", "52:54:00:00:00:03"
WAIT_S = 1200.0
"""For a boot, on an emulated processor that others use too."""


EMULATED = "systemd.default_timeout_start_sec=900 systemd.mask=user@.service systemd.mask=e2scrub_reap.service"
"""What takes seconds of a processor takes minutes of an emulated one: no service is given up for that, and a log-in starts none."""


class VmTarget:
    """One machine. ``start``, ``cut_power`` and ``start`` again are the same machine: ``disk`` is what outlives a cut."""

    def __init__(self, ground: Ground, name: str, address: str, disk: Disk) -> None:
        self.ground, self.name, self.address, self.disk = ground, name, address, disk
        self._folder = ground.folder / f"machine-{name}"
        self._folder.mkdir()
        self._process: subprocess.Popen[bytes] | None = None
        self._stack = ExitStack()

    @property
    def console(self) -> Path:
        """What it said on its serial console, since its last start."""
        return self._folder / "console"

    def start(self) -> None:
        sources = self.ground.sources
        lan = self._stack.enter_context(ground.tap("lan-probe", "lan"))
        net = self._stack.enter_context(ground.tap("net-probe", "net"))
        cards = [f"tap,id={tap},ifname={tap},script=no,downscript=no" for tap in (lan, net)]
        argv = [
            *BESIDE, "qemu-system-x86_64", "-accel", accelerator(sources),
            "-machine", "q35", "-cpu", "max", "-smp", "2", "-m", "1536",
            "-nodefaults", "-display", "none", "-no-reboot", "-kernel", str(sources / "vmlinuz"), "-initrd", str(sources / "initramfs"),
            "-append", f"console=ttyS0 quiet net.ifnames=0 panic=-1 mitigations=off {EMULATED}",
            *self.disk.options(),
            "-netdev", cards[0], "-device", f"virtio-net-pci,netdev={lan},mac={LAN_CARD}",
            "-netdev", cards[1], "-device", f"virtio-net-pci,netdev={net},mac={NET_CARD}",
            "-device", "virtio-rng-pci", "-serial", f"file:{self.console}",
        ]  # fmt: skip
        with (self._folder / "qemu.log").open("ab") as log:
            self._process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log)

    def await_ssh(self, timeout_s: float = WAIT_S) -> float:
        """Seconds until its SSH answers; GroundError after ``timeout_s``."""
        began_s = time.monotonic()
        while not self._answers():
            ended = self._process is None or self._process.poll() is not None
            if ended or time.monotonic() - began_s > timeout_s:
                raise GroundError(f"{self.name} does not answer within {timeout_s:.0f} s{self.last_words()}")
            time.sleep(0.5)
        return time.monotonic() - began_s

    def _answers(self) -> bool:
        try:
            return self.ground.ssh(self.address, "true").returncode == 0
        except subprocess.TimeoutExpired:  # it lets one in before it has time for one
            return False

    def last_words(self) -> str:
        """The end of its console and of the emulator's complaints."""
        files = [file for file in (self.console, self._folder / "qemu.log") if file.exists()]
        return "\n" + "\n".join(file.read_text(errors="replace")[-2500:] for file in files)

    def cut_power(self) -> Settled:
        """Without any notice: what it had not flushed to its disk is lost."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
        self._stack.close()
        return self.disk.settle()


@contextmanager
def vm_target(ground: Ground, name: str, address: str, disk: Disk) -> Iterator[VmTarget]:
    """A machine that is switched on; off at the end."""
    target = VmTarget(ground, name, address, disk)
    try:
        target.start()
        yield target
    finally:
        target.cut_power()
