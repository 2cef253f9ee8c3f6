"""A second kernel beside the stock one, on trees of files as a Raspberry Pi and a machine with GRUB have them: put in place, gone over to
once a start, noted when it came up, given up after three attempts. The programs that start machines anew, and depmod, are ones that
write down how they were called; packing and unpacking are the real ones."""

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[3] / "ansible/roles/mptcp/files/tandem-kernel"
LINUX, STOCK = "4.14.146.mptcp", "6.12.34+rpt-rpi-v8"
GRUB = f"""
menuentry 'Debian' --class debian $menuentry_id_option 'gnulinux-simple-77' {{
}}
submenu 'Advanced options' $menuentry_id_option 'gnulinux-advanced-77' {{
	menuentry 'Debian, {STOCK}' --class debian $menuentry_id_option 'gnulinux-{STOCK}-advanced-77' {{
	}}
	menuentry 'Debian, {LINUX} (recovery mode)' $menuentry_id_option 'gnulinux-{LINUX}-recovery-77' {{
	}}
	menuentry 'Debian, {LINUX}' --class debian $menuentry_id_option 'gnulinux-{LINUX}-advanced-77' {{
	}}
}}
"""


class Machine:
    def __init__(self, folder: Path, boot: str) -> None:
        self.root, self.calls, self.boot = folder / "root", folder / "calls", boot
        programs = folder / "programs"
        for made in (
            *("proc/sys/kernel", "proc/sys/net/mptcp", "var/tmp", "etc/default", "sys/class/net/eth0/device"),
            *("boot/grub", "lib/modules", "boot/firmware"),
        ):
            (self.root / made).mkdir(parents=True)
        programs.mkdir()
        for name in ("depmod", "systemctl", "grub-reboot", "update-grub", "update-initramfs"):
            (programs / name).write_text(f"#!/bin/sh\necho {name} $* >>{self.calls}\n")
            (programs / name).chmod(0o755)
        self.environment = {**os.environ, "PATH": f"{programs}:/usr/sbin:/sbin:{os.environ['PATH']}"}
        (self.root / "etc/tandem-kernel.json").write_text(json.dumps({"linux": LINUX, "boot": boot}))
        (self.root / "boot/firmware/config.txt").write_text("arm_64bit=1\nauto_initramfs=1\n[pi4]\narm_boost=1\n")
        (self.root / "boot/firmware/cmdline.txt").write_text("console=tty1 root=PARTUUID=1-02 rootwait panic=3\n")
        (self.root / "boot/grub/grub.cfg").write_text(GRUB)
        self.runs(STOCK)

    def runs(self, linux: str) -> None:
        (self.root / "proc/sys/kernel/osrelease").write_text(f"{linux}\n")
        enabled = self.root / "proc/sys/net/mptcp/mptcp_enabled"
        enabled.unlink(missing_ok=True)
        if linux == LINUX:
            enabled.write_text("1\n")

    def do(self, *words: str | Path, code: int = 0) -> str:
        argv = [sys.executable, str(PROGRAM), "--root", str(self.root), *map(str, words)]
        done = subprocess.run(argv, capture_output=True, text=True, env=self.environment, check=False)
        assert "Traceback" not in done.stderr
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def called(self) -> Sequence[str]:
        """Since it was last asked."""
        said = self.calls.read_text().splitlines() if self.calls.exists() else []
        self.calls.unlink(missing_ok=True)
        return said


def packed(folder: Path, *, deb: bool, leave_out: str = "") -> Path:
    """A kernel package as `make bindeb-pkg` lays it out; its script would make it the default one, if it ran."""
    tree = folder / "tree"
    for name, text in {
        f"boot/vmlinuz-{LINUX}": "kernel",
        f"boot/config-{LINUX}": "CONFIG_MPTCP=y",
        f"lib/modules/{LINUX}/modules.builtin": "",
        f"lib/modules/{LINUX}/modules.order": "",
        f"usr/lib/linux-image-{LINUX}/broadcom/bcm2711-rpi-4-b.dtb": "tree",
        f"usr/lib/linux-image-{LINUX}/overlays/miniuart-bt.dtbo": "overlay",
    }.items():
        if not leave_out or leave_out not in name:
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).write_text(text)
    if not deb:
        subprocess.run(["tar", "-C", tree, "-caf", folder / "kernel.tar.gz", "."], check=True)
        return folder / "kernel.tar.gz"
    (tree / "DEBIAN").mkdir()
    says = "Package: linux-image-mptcp\nVersion: 1\nArchitecture: all\nMaintainer: x\nDescription: x\n"
    (tree / "DEBIAN/control").write_text(says)
    (tree / "DEBIAN/postinst").write_text(f"#!/bin/sh\ntouch {folder}/ran\n")
    (tree / "DEBIAN/postinst").chmod(0o755)
    command = ["dpkg-deb", "--root-owner-group", "-b", tree, folder / "kernel.deb"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return folder / "kernel.deb"


pytestmark = pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="no dpkg-deb")


@pytest.fixture
def kit(tmp_path: Path) -> Machine:
    """A Raspberry Pi on which the kernel is installed."""
    made = Machine(tmp_path, "tryboot")
    made.do("install", packed(tmp_path, deb=False))
    made.called()
    return made


@pytest.mark.parametrize("deb", [True, False])
def test_on_a_raspberry_pi_it_lies_in_a_folder_of_its_own_and_is_tried_once(tmp_path: Path, deb: bool) -> None:
    pi = Machine(tmp_path, "tryboot")
    firmware = pi.root / "boot/firmware"
    before = (firmware / "config.txt").read_bytes()
    pi.do("install", packed(tmp_path, deb=deb))
    own = firmware / f"tandem-{LINUX}"
    assert {str(f.relative_to(own)) for f in own.rglob("*") if f.is_file()} == {
        *("kernel.img", "bcm2711-rpi-4-b.dtb", "overlays/miniuart-bt.dtbo", "overlays/README", "tandem-kernel.attempts")
    }
    assert pi.called() == [f"depmod -b {pi.root} {LINUX}"]
    assert not (tmp_path / "ran").exists()
    assert not any((pi.root / "var/tmp").iterdir())
    pi.do("try")
    assert pi.called() == ["systemctl reboot --reboot-argument=0 tryboot"]
    tried = (firmware / "tryboot.txt").read_text()
    assert tried.startswith(before.decode())
    own_lines = f"[all] auto_initramfs=0 os_prefix=tandem-{LINUX}/ kernel=kernel.img cmdline=cmdline.txt"
    assert tried.splitlines()[-5:] == own_lines.split()
    assert (own / "cmdline.txt").read_text() == "console=tty1 root=PARTUUID=1-02 rootwait panic=10\n"
    assert (firmware / "config.txt").read_bytes() == before


def test_with_grub_the_entry_is_asked_for_by_its_ids(tmp_path: Path) -> None:
    server = Machine(tmp_path, "grub")
    server.do("install", packed(tmp_path, deb=True))
    assert server.called()[1:] == [f"update-initramfs -c -k {LINUX}", "update-grub"]
    parts = sorted((server.root / "etc/default/grub.d").iterdir())
    script = 'GRUB_CMDLINE_LINUX="console=ttyS0"; for file; do . "$file"; done; echo "$GRUB_CMDLINE_LINUX"'
    line = subprocess.run(["sh", "-c", script, "sh", *parts], capture_output=True, text=True, check=True).stdout
    assert line == "console=ttyS0 panic=10\n", "a panic, or an initramfs without a root, leads back by itself"
    server.do("try")
    assert server.called() == [f"grub-reboot gnulinux-advanced-77>gnulinux-{LINUX}-advanced-77", "systemctl reboot"]


@pytest.mark.parametrize("boot", ["tryboot", "grub"])
def test_one_that_comes_up_is_tried_at_every_start(tmp_path: Path, boot: str) -> None:
    kit = Machine(tmp_path, boot)
    kit.do("install", packed(tmp_path, deb=False))
    kit.called()
    for _ in range(5):
        kit.runs(STOCK)
        kit.do("try")
        assert any("reboot" in call for call in kit.called())
        kit.runs(LINUX)
        kit.do("try")
        assert kit.called() == []
        assert json.loads(kit.do("status", "--json"))["attempts"] == 0


def test_one_that_does_not_come_up_is_given_up_after_three_and_said(kit: Machine) -> None:
    for _ in range(3):
        kit.do("try")
        assert len(kit.called()) == 1
    assert "given up" in kit.do("try", code=1)
    assert kit.called() == []
    assert json.loads(kit.do("status", "--json", code=1))["given_up"] is True
    kit.do("again")
    assert len(kit.called()) == 1


def test_one_that_comes_up_ill_counts_as_one_that_did_not_and_goes_back_by_itself(kit: Machine) -> None:
    interface, multipath = kit.root / "sys/class/net/eth0", kit.root / "proc/sys/net/mptcp/mptcp_enabled"
    for attempt in (1, 2, 3):
        kit.runs(STOCK)
        kit.do("try")
        kit.called()
        kit.runs(LINUX)
        if attempt == 2:
            multipath.unlink()
            assert "without Multipath TCP" in kit.do("try", "--wait", "0")
        else:
            shutil.rmtree(interface)
            assert "without any network interface" in kit.do("try", "--wait", "0")
            (interface / "device").mkdir(parents=True)
        assert kit.called() == ["systemctl reboot"]
        assert json.loads(kit.do("status", "--json"))["attempts"] == attempt
    kit.runs(STOCK)
    assert "given up" in kit.do("try", code=1)
    assert kit.called() == []


def test_what_comes_up_late_is_waited_for(kit: Machine) -> None:
    kit.do("try")
    kit.called()
    kit.runs(LINUX)
    late = kit.root / "sys/class/net/eth0"
    shutil.rmtree(late)
    threading.Timer(0.5, (late / "device").mkdir, kwargs={"parents": True}).start()
    assert kit.do("try") == f"{LINUX} runs\n"
    assert kit.called() == []


def test_interfaces_that_shall_not_carry_are_marked_and_a_name_that_is_none_is_one_line(kit: Machine) -> None:
    kit.runs(LINUX)
    settings = {"linux": LINUX, "boot": "tryboot", "interfaces": ["eth0"]}
    (kit.root / "etc/tandem-kernel.json").write_text(json.dumps(settings))
    assert kit.do("try") == f"{LINUX} runs\n", "there is no other"
    (kit.root / "sys/class/net/none-of-it").mkdir()
    assert len(kit.do("try", code=3).splitlines()) == 1


def test_an_attempt_that_cannot_be_counted_is_not_made(kit: Machine) -> None:
    attempts = kit.root / f"boot/firmware/tandem-{LINUX}/tandem-kernel.attempts"
    attempts.with_name(attempts.name + ".tmp").mkdir()  # stands for a boot partition that cannot be written
    assert "could not be counted" in kit.do("try", code=3)
    assert kit.called() == []


def test_a_count_that_a_power_cut_tore_counts_as_given_up(kit: Machine) -> None:
    for torn in ("", "x", "\0\0"):
        (kit.root / f"boot/firmware/tandem-{LINUX}/tandem-kernel.attempts").write_text(torn)
        assert "given up" in kit.do("try", code=1)
        assert kit.called() == []


def test_a_package_that_lacks_something_and_a_file_that_is_none_are_refused_in_one_line(tmp_path: Path) -> None:
    kit = Machine(tmp_path, "tryboot")
    for lacks, said in (
        ("lib/modules", "mptcp_v094_linux"),
        ("boot/vmlinuz", "mptcp_v094_linux"),
        (".dtb", "make dtbs"),
    ):
        shutil.rmtree(tmp_path / "tree", ignore_errors=True)
        (line,) = kit.do("install", packed(tmp_path, deb=False, leave_out=lacks), code=2).splitlines()
        assert said in line
        assert "not installed" in kit.do("try", code=3)
        assert kit.called() == []
    (tmp_path / "x.deb").write_bytes(b"nothing of that kind")
    assert len(kit.do("install", tmp_path / "x.deb", code=3).splitlines()) == 1
