"""Small images with the partition layout of Raspberry Pi OS Lite and the files of which ``tandem-image`` and a probe's first start know.

The contents are what pi-gen, raspberrypi-sys-mods and userconf-pi put there. Made by the tools that a distribution makes images with
(sfdisk, mkfs.fat, mke2fs), none of which ``tandem-image`` uses, so that a mistake in its own table cannot cancel itself.
"""

import base64
import io
import lzma
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MIB = 1 << 20
BOOT_START, BOOT_SECTORS = 16384, 64 * MIB // 512
ROOT_START, ROOT_SECTORS = BOOT_START + BOOT_SECTORS, 48 * MIB // 512
DISK_ID = 0x4D8FD085
TOOLS = ("sfdisk", "mkfs.vfat", "mke2fs", "mcopy", "debugfs")
_PATH = "/usr/sbin:/sbin:/usr/bin:/bin"

_ROOT = "console=serial0,115200 console=tty1 root=PARTUUID={id}-02 rootfstype=ext4 fsck.repair=yes rootwait"
_CMDLINE = {"bookworm": f"{_ROOT} quiet init=/usr/lib/raspberrypi-sys-mods/firstboot\n", "trixie": f"{_ROOT} resize\n"}
_GROUPS = "root:x:0:\nadm:x:4:\nsudo:x:27:\nvideo:x:44:\nplugdev:x:46:\nusers:x:100:\nnetdev:x:106:\ngpio:x:986:\npi:x:1000:\n"


@dataclass(frozen=True)
class StockImage:
    """Where it is; ``boot`` and ``root`` are folders with what its partitions hold."""

    path: Path
    boot: Path
    root: Path


def missing_tools() -> list[str]:
    return [tool for tool in TOOLS if shutil.which(tool, path=_PATH) is None]


def make(
    folder: Path, release: str, boot: dict[str, str] | None = None, root: dict[str, str] | None = None
) -> StockImage:
    """An image in ``folder``. ``boot`` and ``root``: more files of the two partitions, or others of the same names."""
    disk_id = f"{DISK_ID:08x}"
    root_folder = _laid(
        folder / "root",
        {
            "etc/passwd": "root:x:0:0:root:/root:/bin/bash\npi:x:1000:1000:,,,:/home/pi:/bin/bash\n",
            "etc/shadow": "root:*:20000:0:99999:7:::\npi:!:20000:0:99999:7:::\n",
            "etc/group": _GROUPS,
            "etc/gshadow": "".join(f"{line.split(':')[0]}:!::\n" for line in _GROUPS.splitlines()),
            "etc/login.defs": "UID_MIN 1000\nUID_MAX 60000\nGID_MIN 1000\nGID_MAX 60000\nUSERGROUPS_ENAB yes\n",
            "etc/skel/.bashrc": "# ~/.bashrc\n",
            "etc/hostname": "raspberrypi\n",
            "etc/hosts": "127.0.0.1\tlocalhost\n::1\t\tlocalhost ip6-localhost\n\n127.0.1.1\t\traspberrypi\n",
            "etc/fstab": f"PARTUUID={disk_id}-01  /boot/firmware  vfat    defaults          0       2\n"
            f"PARTUUID={disk_id}-02  /               ext4    defaults,noatime  0       1\n",
            "var/lib/NetworkManager/NetworkManager.state": "[main]\nWirelessEnabled=false\n",
            "var/lib/systemd/rfkill/platform-fe300000.mmcnr:wlan": "1\n",
            "var/lib/systemd/rfkill/platform-soc:bluetooth": "1\n",
            **(root or {}),
        },
    )
    boot_folder = _laid(
        folder / "boot",
        {
            "cmdline.txt": _CMDLINE[release].format(id=disk_id),
            "config.txt": "# For more options see http://rptl.io/configtxt\ndtparam=audio=on\nauto_initramfs=1\n\n[all]\n",
            "user-data": "#cloud-config\n" if release == "trixie" else None,
            "network-config": "network: {version: 2, ethernets: {eth0: {dhcp4: true, optional: true}}}\n"
            if release == "trixie"
            else None,
            "meta-data": "dsmode: local\ninstance_id: rpios-image\n" if release == "trixie" else None,
            **(boot or {}),
        },
    )
    return StockImage(_assemble(folder, boot_folder, root_folder), boot_folder, root_folder)


def boot_files(image: Path) -> dict[str, str]:
    """What lies on the image's FAT partition, as mtools read it."""
    place = f"{image}@@{BOOT_START * 512}"
    names = [name.removeprefix("::/") for name in _run("mdir", "-b", "-i", place, "::").splitlines()]
    return {name: _run("mtype", "-i", place, f"::/{name}") for name in names}


def carried(script: str) -> Iterator[tuple[tarfile.TarInfo, str]]:
    """What firstrun.sh brings: each entry with its text, or where a link leads."""
    packed = script.partition("<<'FILES'")[2].partition("\n")[2].partition("\nFILES\n")[0]
    with tarfile.open(fileobj=io.BytesIO(base64.b64decode(packed))) as archive:
        for entry in archive:
            content = archive.extractfile(entry) if entry.isfile() else None
            yield entry, entry.linkname if content is None else content.read().decode()


def _laid(folder: Path, contents: dict[str, str | None]) -> Path:
    for name, content in contents.items():
        if content is not None:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(content)
            if content.startswith("#!"):
                (folder / name).chmod(0o755)
    return folder


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


def _run(program: str, *arguments: str, stdin: str = "") -> str:
    found = shutil.which(program, path=_PATH)
    assert found is not None, program
    done = subprocess.run(
        [found, *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": _PATH, "MTOOLSRC": "/dev/null", "MTOOLS_SKIP_CHECK": "1"},
    )
    assert done.returncode == 0, (program, done.stdout, done.stderr)
    return done.stdout
