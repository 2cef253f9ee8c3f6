"""A target that is a machine of its own (QEMU): its own kernel, udev and USB, a disk that outlives power cuts."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from targets import ground
from targets.ground import Ground, GroundError, Seed

REPOSITORY = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "vm"))
from initramfs import Archive  # noqa: E402 - the virtual machine's: standard library, found by folder

LAN_CARD, NET_CARD = "52:54:00:00:00:02", "52:54:00:00:00:03"
WAIT_S = 240.0
"""For a boot, on an emulated processor that others use too."""


def lent() -> dict[str, Path]:
    """Tag → folder of what may run in the machine from here: the checkout, the Python environment, the link emulator."""
    folders = [REPOSITORY, Path(sys.prefix)]
    if "TANDEM_LINK" in os.environ:
        folders.append(Path(os.environ["TANDEM_LINK"]).parent)
    kept: list[Path] = []
    for folder in folders:
        if not any(folder.is_relative_to(other) for other in (*kept, Path("/usr"))):
            kept.append(folder)
    return {f"lent{number}": folder for number, folder in enumerate(kept)}


def lan_profile(address: str) -> Seed:
    """NetworkManager's profile of the wired network, as its configuration tool writes it; the other card is the operators'."""
    text = (
        "[connection]\nid=lan\ntype=ethernet\ninterface-name=eth0\n[ipv4]\nmethod=manual\n"
        f"address1={address}/24\nroute1={ground.SERVER_PUBLIC}/32,{ground.CONTROL},1000\ndns={ground.CONTROL};\nnever-default=true\n"
        "[ipv6]\nmethod=disabled\n"
    )
    return {"etc/NetworkManager/system-connections/lan.nmconnection": (text.encode(), 0o600)}


class VmTarget:
    """One machine. Its disk is made once; ``boot``, ``cut_power`` and ``boot`` again are the same machine."""

    def __init__(
        self,
        ground: Ground,
        name: str,
        address: str,
        seed: Mapping[str, tuple[bytes, int]],
        append: str = "",
        *,
        memory_mb: int = 1536,
    ) -> None:
        self.ground, self.name, self.address = ground, name, address
        self._memory_mb, self._append = memory_mb, append
        self._folder = ground.folder / name
        self._folder.mkdir()
        self._disk = self._folder / "disk.qcow2"
        self._process: subprocess.Popen[bytes] | None = None
        self._stack = ExitStack()
        backing = ground.sources / "root.ext4"
        if not self._disk.exists():
            _run("qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", backing, self._disk)
        archive = Archive()
        for path, (content, mode) in seed.items():
            archive.file(f"seed/{path}", content, mode)
        (self._folder / "initramfs").write_bytes((ground.sources / "initramfs").read_bytes() + archive.bytes())

    @property
    def console(self) -> Path:
        """What it said on its serial console."""
        return self._folder / "console"

    def start(self) -> None:
        """Switch it on."""
        sources = self.ground.sources
        lan = self._stack.enter_context(ground.tap("lan-probe", "lan"))
        net = self._stack.enter_context(ground.tap("net-probe", "net"))
        shares = [
            f"local,path={folder},mount_tag={tag},id={tag},security_model=none,readonly=on,multidevs=remap"
            for tag, folder in lent().items()
        ]
        cards = [f"tap,id={tap},ifname={tap},script=no,downscript=no" for tap in (lan, net)]
        # Both of its processors are emulated in threads of their own.
        argv = [
            shutil.which("qemu-system-x86_64") or "qemu-system-x86_64",
            "-accel", "tcg,thread=multi", "-machine", "q35", "-cpu", "max", "-smp", "2", "-m", str(self._memory_mb),
            "-nodefaults", "-display", "none", "-kernel", str(sources / "vmlinuz"), "-initrd", str(self._folder / "initramfs"),
            "-append", f"console=ttyS0 quiet net.ifnames=0 panic=-1 mitigations=off systemd.mask=e2scrub_reap.service {self._append}",
            "-drive", f"file={self._disk},format=qcow2,if=virtio",
            "-netdev", cards[0], "-device", f"virtio-net-pci,netdev={lan},mac={LAN_CARD}",
            "-netdev", cards[1], "-device", f"virtio-net-pci,netdev={net},mac={NET_CARD}",
            *(word for share in shares for word in ("-virtfs", share)),
            "-device", "virtio-rng-pci", "-serial", f"file:{self.console}",
        ]  # fmt: skip
        self._process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=(self._folder / "qemu.log").open("ab")
        )

    def await_ssh(self, timeout_s: float = WAIT_S) -> float:
        """Seconds until its SSH answers; GroundError after ``timeout_s``."""
        began_s = time.monotonic()
        while self.ground.ssh(self.address, "true").returncode != 0:
            if time.monotonic() - began_s > timeout_s or (
                self._process is not None and self._process.poll() is not None
            ):
                raise GroundError(f"{self.name} does not answer within {timeout_s:.0f} s{self.last_words()}")
            time.sleep(1.0)
        return time.monotonic() - began_s

    def last_words(self) -> str:
        """The end of its console and of the emulator's complaints."""
        texts = [
            file.read_text(errors="replace")[-2500:]
            for file in (self.console, self._folder / "qemu.log")
            if file.exists()
        ]
        return "\n" + "\n".join(texts)

    def cut_power(self) -> None:
        """Without any notice: what it had not handed to its disk is lost."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
        self._stack.close()


def _run(*argv: str | Path) -> None:
    ground.run(*argv)


@contextmanager
def vm_target(
    ground: Ground, name: str, address: str, seed: Mapping[str, tuple[bytes, int]], append: str = ""
) -> Iterator[VmTarget]:
    """A machine that is switched on; off at the end."""
    target = VmTarget(ground, name, address, seed, append)
    try:
        target.start()
        yield target
    finally:
        target.cut_power()
