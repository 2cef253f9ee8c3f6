"""Small images with the partition layout and the files of Raspberry Pi OS Lite: what ``tandem-image`` reads and changes, and nothing else.

The contents are what pi-gen, raspberrypi-sys-mods and userconf-pi put there. Made by the tools that a distribution makes images with
(sfdisk, mkfs.fat, mke2fs), none of which ``tandem-image`` uses, so that a mistake in its own table cannot cancel itself.
"""

from __future__ import annotations

import lzma
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

MIB = 1 << 20
BOOT_START, BOOT_SECTORS = 16384, 64 * MIB // 512
ROOT_START, ROOT_SECTORS = BOOT_START + BOOT_SECTORS, 48 * MIB // 512
DISK_ID = 0x4D8FD085
TOOLS = ("sfdisk", "mkfs.vfat", "mke2fs", "mcopy", "debugfs", "e2fsck")
_PATH = "/usr/sbin:/sbin:/usr/bin:/bin"

_CMDLINE = {
    "bookworm": "console=serial0,115200 console=tty1 root=PARTUUID={id}-02 rootfstype=ext4 fsck.repair=yes rootwait quiet "
    "init=/usr/lib/raspberrypi-sys-mods/firstboot\n",
    "trixie": "console=serial0,115200 console=tty1 root=PARTUUID={id}-02 rootfstype=ext4 fsck.repair=yes rootwait resize\n",
}
_LIBRARIES = {"armhf": "arm-linux-gnueabihf", "arm64": "aarch64-linux-gnu"}
_ACCOUNTS = "root:x:0:0:root:/root:/bin/bash\ndaemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\npi:x:1000:1000:,,,:/home/pi:/bin/bash\n"


@dataclass(frozen=True)
class StockImage:
    """Where it is and what it is."""

    path: Path
    release: str
    architecture: str


def missing_tools() -> list[str]:
    """Which of TOOLS this machine lacks."""
    return [tool for tool in TOOLS if shutil.which(tool, path=_PATH) is None]


def make(folder: Path, release: str, architecture: str, **changes: str | None) -> StockImage:
    """An image in ``folder``. ``changes``: files of the root by path, __ for /, None to leave one out."""
    root = folder / "root"
    disk_id = f"{DISK_ID:08x}"
    contents: dict[str, str | None] = {
        "usr/lib/os-release": f'PRETTY_NAME="{"Raspbian" if architecture == "armhf" else "Debian"} GNU/Linux ({release})"\n'
        f"ID={'raspbian' if architecture == 'armhf' else 'debian'}\nVERSION_CODENAME={release}\n",
        "etc/rpi-issue": "Raspberry Pi reference\nGenerated using pi-gen, stage2\n",
        "etc/passwd": _ACCOUNTS,
        "etc/hostname": "raspberrypi\n",
        "etc/hosts": "127.0.0.1\tlocalhost\n::1\t\tlocalhost ip6-localhost\n\n127.0.1.1\t\traspberrypi\n",
        "etc/fstab": "proc            /proc           proc    defaults          0       0\n"
        f"PARTUUID={disk_id}-01  /boot/firmware  vfat    defaults          0       2\n"
        f"PARTUUID={disk_id}-02  /               ext4    defaults,noatime  0       1\n",
        "etc/ssh/sshd_config": "Include /etc/ssh/sshd_config.d/*.conf\nUsePAM yes\n",
        "var/lib/NetworkManager/NetworkManager.state": "[main]\nWirelessEnabled=false\n",
        "var/lib/systemd/rfkill/platform-fe300000.mmcnr:wlan": "1\n",
        "var/lib/systemd/rfkill/platform-soc:bluetooth": "0\n",
        f"usr/lib/{_LIBRARIES.get(architecture, architecture)}/libc.so.6": "",
        "usr/lib/userconf-pi/userconf": "#!/bin/sh\n",
        "home/pi/.bashrc": "# ~/.bashrc\n",
        "usr/bin/cloud-init": "#!/usr/bin/python3\n" if release == "trixie" else None,
        **{name.replace("__", "/"): content for name, content in changes.items()},
    }
    for name, content in contents.items():
        if content is not None:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(content)
    if not (root / "etc/os-release").exists():
        (root / "etc/os-release").symlink_to("../usr/lib/os-release")
    boot = folder / "boot"
    boot.mkdir()
    (boot / "cmdline.txt").write_text(_CMDLINE.get(release, _CMDLINE["trixie"]).format(id=disk_id))
    (boot / "config.txt").write_text(
        "# For more options see http://rptl.io/configtxt\ndtparam=audio=on\nauto_initramfs=1\n\n[all]\n"
    )
    if release == "trixie":
        (boot / "user-data").write_text("#cloud-config\n")
        (boot / "network-config").write_text("# examples\n")
        (boot / "meta-data").write_text("instance_id: rpios-image\n")
    return StockImage(_assemble(folder, boot, root), release, architecture)


def packed(image: Path) -> Path:
    """The same as .img.xz."""
    target = image.with_suffix(".img.xz")
    target.write_bytes(lzma.compress(image.read_bytes(), preset=0))
    return target


def _assemble(folder: Path, boot: Path, root: Path) -> Path:
    fat, ext4, image = folder / "boot.fat", folder / "root.ext4", folder / "stock.img"
    with fat.open("wb") as file:
        file.truncate(BOOT_SECTORS * 512)
    _run("mkfs.vfat", "-F", "32", "-n", "bootfs", str(fat))
    _run("mcopy", "-i", str(fat), *map(str, sorted(boot.iterdir())), "::/")
    options = ("-q", "-t", "ext4", "-L", "rootfs", "-E", "root_owner=0:0")
    _run("mke2fs", *options, "-d", str(root), str(ext4), f"{ROOT_SECTORS // 2}k")
    with image.open("wb") as file:
        file.truncate((ROOT_START + ROOT_SECTORS) * 512)
    table = f"label: dos\nlabel-id: 0x{DISK_ID:08x}\n{BOOT_START},{BOOT_SECTORS},c\n{ROOT_START},{ROOT_SECTORS},83\n"
    _run("sfdisk", "--quiet", str(image), stdin=table)
    with image.open("r+b") as file:
        for part, start in ((fat, BOOT_START), (ext4, ROOT_START)):
            file.seek(start * 512)
            file.write(part.read_bytes())
            part.unlink()
    return image


def _run(program: str, *arguments: str, stdin: str = "") -> None:
    found = shutil.which(program, path=_PATH)
    assert found is not None, program
    done = subprocess.run(
        [found, *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": _PATH, "MTOOLSRC": "/dev/null"},
    )
    assert done.returncode == 0, (program, done.stdout, done.stderr)
