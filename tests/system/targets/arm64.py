"""The probe's playbook, unchanged and whole, twice, on an arm64 machine that is emulated whole (QEMU without KVM).

    sudo python tests/system/targets/arm64.py build/arm64 [--leave FOLDER] [--more]

with the environment of the tests (ansible-playbook, influxd, wireguard-go). The first time it needs the network, for ``arm64_root.py``.
It stands alone: no test takes an hour. The machine has three cards: the lan and two operators', which this machine plays; no modem. The
server is ``tandem-server`` on this machine (server_here.py), whose tunnels end in wireguard-go. The second play must change nothing.
``--leave``: where keys, logs and disk stay. ``--more``: afterwards, also where a play failed, each line of standard input is the options
of a further play (``--start-at-task="…"``). Exit status: 0; 1 when a play failed or the second changed something; 3 when it cannot be
tried here.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent), str(HERE.parent / "vm"), str(HERE)]

from initramfs import Archive  # noqa: E402 - the virtual machine's, found by folder
from targets import arm64_root, play  # noqa: E402 - the tests' own, found by folder
from targets import ground as grounds  # noqa: E402
from targets.available import FOLDER  # noqa: E402
from targets.disk import Disk  # noqa: E402
from targets.ground import OPERATORS, PROBE, SERVER_PUBLIC, Ground, GroundError, Seed  # noqa: E402
from targets.machine_of import lan_profile  # noqa: E402
from targets.server_here import server_here  # noqa: E402
from targets.vm_target import LAN_CARD, VmTarget  # noqa: E402

KIT = "kit"
INSIDE = "TANDEM_ARM64_INSIDE"
BOOT_S, PLAY_S = 1800.0, 7200.0
"""What a boot and a play may take on processors that others use."""
PATIENCE = (
    "systemd.mask=e2scrub_reap.service systemd.mask=serial-getty@ttyAMA0.service systemd.default_timeout_start_sec=1800"
)
"""The machine's own services wait as long: else one that starts slowly here is ended before it is up."""
OPERATOR_CARDS = {"op-a": "52:54:00:00:01:0a", "op-b": "52:54:00:00:01:0b"}
PATHS = [{"name": "a", "operator": "Red", "interface": "eth1"}, {"name": "b", "operator": "Blue", "interface": "eth2"}]
LOOK = (
    "uname -m; tandem --version; cat /etc/debian_version; uname -r; cat /proc/sys/net/mptcp/enabled; "
    "sudo wg show wg-tandem latest-handshakes"
)


def operator_profiles() -> Seed:
    """NetworkManager's profiles of the operators' cards."""
    return {
        f"etc/NetworkManager/system-connections/eth{number + 1}.nmconnection": (
            f"[connection]\nid=eth{number + 1}\ntype=ethernet\ninterface-name=eth{number + 1}\n[ipv4]\nmethod=manual\n"
            f"address1=10.64.{number}.2/30,10.64.{number}.1\nroute-metric={700 + number}\n[ipv6]\nmethod=disabled\n".encode(),
            0o600,
        )
        for number in range(len(OPERATOR_CARDS))
    }


@contextlib.contextmanager
def operators() -> Iterator[list[str]]:
    """Two operators, played by this machine; the cards that lead to them."""
    with contextlib.ExitStack() as stack:
        grounds.run("ip", "address", "add", f"{OPERATORS}/24", "dev", "net")
        for number, name in enumerate(OPERATOR_CARDS):
            grounds.run("ip", "tuntap", "add", name, "mode", "tap")
            stack.callback(grounds.run, "ip", "link", "del", name)
            grounds.run("ip", "address", "add", f"10.64.{number}.1/30", "dev", name)
            grounds.run("ip", "link", "set", name, "up")
        yield list(OPERATOR_CARDS)


class Arm64Target(VmTarget):
    """A machine with a Raspberry Pi 4's processor cores, and QEMU's own board around them. ``seed`` comes with its initramfs."""

    def __init__(self, ground: Ground, name: str, address: str, seed: Seed) -> None:
        super().__init__(ground, name, address, Disk(ground.folder / "never-cut.img"))
        self._drive, self._initramfs = self._folder / "disk.qcow2", self._folder / "initramfs"
        grounds.run(
            "qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", ground.sources / "root.ext4", self._drive
        )
        archive = Archive()
        for path, (content, mode) in seed.items():
            archive.file(f"seed/{path}", content, mode)
        self._initramfs.write_bytes((ground.sources / "initramfs").read_bytes() + archive.bytes())

    def start(self) -> None:
        lan = self._stack.enter_context(grounds.tap("lan-probe", "lan"))
        cards = {lan: LAN_CARD} | {tap: OPERATOR_CARDS[tap] for tap in self._stack.enter_context(operators())}
        words = [
            word
            for tap, address in cards.items()
            for word in (
                "-netdev", f"tap,id={tap},ifname={tap},script=no,downscript=no",
                "-device", f"virtio-net-pci,netdev={tap},mac={address},romfile=",
            )
        ]  # fmt: skip
        sources = self.ground.sources
        argv = [
            "qemu-system-aarch64", "-accel", "tcg,thread=multi", "-machine", "virt,gic-version=2", "-cpu", "cortex-a72", "-smp", "2",
            "-m", str(self._memory_mb), "-nodefaults", "-display", "none",
            "-kernel", str(sources / "vmlinuz"), "-initrd", str(self._initramfs),
            "-append", f"console=ttyAMA0 quiet net.ifnames=0 panic=-1 mitigations=off {PATIENCE} {self._append}",
            "-drive", f"file={self._drive},format=qcow2,if=virtio,cache=unsafe", *words,
            "-device", "virtio-rng-pci", "-serial", f"file:{self.console}",
        ]  # fmt: skip
        self._process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=(self._folder / "qemu.log").open("ab")
        )

    def processor_s(self) -> float:
        """What the emulator used of processors since it was switched on."""
        assert self._process is not None
        fields = Path(f"/proc/{self._process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def told(part: str, began_s: float, target: Arm64Target) -> None:
    """A part of the story, its time, and the emulator's on a processor: the first says little where others use the processors too."""
    print(
        f"{part}: {time.monotonic() - began_s:.0f} s; emulator's processor time {target.processor_s():.0f} s",
        flush=True,
    )


def play_once(target: Arm64Target, inventory: Path, name: str, options: list[str]) -> play.Played:
    """One play, told; its log is NAME.log."""
    began_s = time.monotonic()
    played = play.play(target.ground, "probe.yml", inventory, *options, timeout_s=PLAY_S, log=name)
    counts = [played.tasks.get(KIT), played.changed.get(KIT), played.failed.get(KIT)]
    told(f"{name}: tasks, changed, failed {counts}, exit {played.exit}", began_s, target)
    if played.exit != 0:
        print(played.output[-3000:], flush=True)
    return played


def story(folder: Path, sources: Path, more: bool) -> bool:
    """Boot, play, play again, look; whether all went as it must."""
    with contextlib.ExitStack() as stack:
        ground = stack.enter_context(grounds.ground(folder, sources))
        seed = ground.seed(KIT, PROBE) | lan_profile(PROBE, SERVER_PUBLIC) | operator_profiles()
        target = Arm64Target(ground, KIT, PROBE, seed)
        stack.callback(target.cut_power)
        began_s = time.monotonic()
        target.start()
        server = stack.enter_context(server_here(ground))
        told("server ready", began_s, target)
        target.await_ssh(BOOT_S)
        told("boot until SSH answers", began_s, target)
        probe = {"tandem_paths": PATHS, "collector_enrol_code": server.invitation(KIT)}
        inventory = play.inventory(ground, {}, probe | {"preflight_page_folder": str(folder)})
        first = play_once(target, inventory, "first", [])
        good = first.exit == 0
        if good:
            second = play_once(target, inventory, "second", [])
            good = second.exit == 0 and second.changed == {KIT: 0}
            print(*second.changes(), sep="\n", flush=True)
        for number, line in enumerate(sys.stdin if more else []):
            good = play_once(target, inventory, f"more-{number}", shlex.split(line)).exit == 0
        looked = ground.ssh(PROBE, LOOK)
        print(looked.stdout, looked.stderr, flush=True)
        return good


def main(words: list[str]) -> int:
    """Make what is needed, then go on in namespaces of one's own."""
    parser = argparse.ArgumentParser(prog="arm64.py", description="the probe's playbook on an emulated arm64 machine")
    parser.add_argument("made", type=Path, help="where what the machine is made from is kept")
    parser.add_argument("--leave", type=Path, help="a folder that is not there yet, for keys, logs and disk")
    parser.add_argument("--more", action="store_true", help="each line of standard input: options of a further play")
    chosen = parser.parse_args(words)
    lacking = [name for name in ("qemu-system-aarch64", "qemu-img", "dnsmasq", "ssh") if shutil.which(name) is None]
    try:
        if lacking:
            raise GroundError(f"{lacking[0]} not found; hint: ./kit test, and apt-get install qemu-system-arm")
        if INSIDE not in os.environ:
            arm64_root.made_in(chosen.made.absolute(), FOLDER)
            # Networks, mounts and processes end with it.
            spaces = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
            inside = [*spaces, "sh", "-c", 'ip link set lo up && exec "$@"', "sh", sys.executable, __file__, *words]
            return subprocess.run(inside, env=os.environ | {INSIDE: "1"}, check=False).returncode
        sources = arm64_root.made_in(chosen.made.absolute(), FOLDER)
        with contextlib.ExitStack() as stack:
            folder = chosen.leave and chosen.leave.absolute()
            if folder is None:
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tandem-arm64-")))
            else:
                folder.mkdir(parents=True)
            return 0 if story(folder, sources, chosen.more) else 1
    except (GroundError, arm64_root.build.BuildError, subprocess.TimeoutExpired) as error:
        print(f"arm64: {error}", file=sys.stderr)
        return 3


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
