"""Makes what the targets are made from: a Debian as it comes from its installer, a package archive and wheels for what playbooks add.

``make.py FOLDER`` needs the network and root once; the result, ``FOLDER/KEY/``, needs neither from then on:

- ``root/``     an installed Debian of this machine's release: systemd, SSH, Python (base.txt)
- ``root.ext4`` the same as a disk; ``vmlinuz``, ``initramfs``: the distribution's kernel
- ``archive/``  every package that the playbooks install, as a signed mirror, with a stand-in for Grafana
- ``wheels/``   every Python package of the group runtime in requirements/lock.txt

Standard library only. Exit status: 0, 3 when it failed, 4 when no target is known for this system.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[2]
sys.path.insert(0, str(HERE.parent / "vm"))

import build  # noqa: E402 - the virtual machine's builder: its kernel and initramfs are these targets' too
import repository  # noqa: E402
import stand_in_grafana  # noqa: E402
from initramfs import Archive  # noqa: E402

LISTS = ("base.txt", "probe.txt", "server.txt", "authority.txt")
INPUTS = (*LISTS, "init.sh", "make.py", "repository.py", "stand_in_grafana.py")
LOCK = REPOSITORY / "requirements" / "lock.txt"
ROOM = 1 << 30
"""Free bytes of the target's disk."""


def listed(name: str) -> list[str]:
    lines = (line.strip() for line in (HERE / name).read_text(encoding="ascii").splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def key() -> str:
    """What they are made from, as one word."""
    digest = hashlib.sha256(build.key().encode())
    for file in (*(HERE / name for name in INPUTS), LOCK):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def required() -> Iterator[str]:
    """What Debian installs everywhere: essential packages and those of priority "required"."""
    available = build._run(["apt-cache", "dumpavail"], "apt's lists are not to be had")
    for text in available.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line and not line.startswith(" "))
        if fields.get("Essential") == "yes" or fields.get("Priority") == "required":
            yield fields["Package"]


def fetch(work: Path) -> list[Path]:
    """The packages of all lists with all that they need. List by list: what one machine may not have together (two programs that set the
    clock), several machines have."""
    found: dict[str, Path] = {}
    for number, names in enumerate(
        ([*listed("base.txt"), *required(), "busybox-static"], *(listed(name) for name in LISTS[1:]))
    ):
        (work / str(number)).mkdir()
        found |= {package.name: package for package in build.fetch(names, work / str(number))}
    return list(found.values())


def install(archive: Path, suite: str, root: Path) -> None:
    """A Debian from ``archive`` in ``root``, its packages' scripts run as ever; it trusts the archive's key and names no source."""
    hooks = [
        f'--customize-hook=install -D -m 0644 {archive / "key.asc"} "$1"/etc/apt/trusted.gpg.d/tandem-tests.asc',
        # Keys, name and identity are each machine's own.
        '--customize-hook=rm -f "$1"/etc/ssh/ssh_host_* "$1"/etc/apt/sources.list "$1"/etc/resolv.conf; : >"$1"/etc/machine-id',
        # Indices of hardware, libraries and messages are as new as the programs: no first boot makes them again.
        '--customize-hook=touch "$1"/etc/.updated "$1"/var/.updated',
        # Off, as where there is no medium for it; a test of a first boot turns it on (first_boot.py).
        '--customize-hook=mkdir -p "$1"/etc/cloud; touch "$1"/etc/cloud/cloud-init.disabled',
        # People log in by key; "*" fits no password and does not lock the account.
        '--customize-hook=chroot "$1" useradd -m -s /bin/bash -G sudo -p "*" tandem-admin',
        "--customize-hook=printf 'tandem-admin ALL=(ALL) NOPASSWD: ALL\\n' >\"$1\"/etc/sudoers.d/first-boot",
    ]
    argv = [
        "mmdebstrap", "--quiet", "--mode=root", "--variant=required", f"--include={','.join([*listed('base.txt'), 'busybox-static'])}",
        "--aptopt=APT::Install-Recommends \"false\"", "--dpkgopt=path-exclude=/usr/share/man/*",
        "--dpkgopt=path-exclude=/usr/share/locale/*", "--dpkgopt=path-exclude=/usr/share/doc/*", *hooks,
        suite, str(root), f"deb [trusted=yes] copy://{archive} {suite} {repository.COMPONENT}",
    ]  # fmt: skip
    build._run([*argv], "mmdebstrap failed")


def kernel(work: Path, root: Path, made: Path, image: str) -> None:
    """The kernel's modules into ``root``; the kernel itself and what it starts with into ``made``."""
    build._run(["apt-get", "-qq", "download", image], f"{image} is not to be had", cwd=work)
    unpacked = work / "kernel"
    build.unpack(list(work.glob("linux-image-*.deb")), unpacked)
    shutil.copy(next((unpacked / "boot").glob("vmlinuz-*")), made / "vmlinuz")
    shutil.copytree(unpacked / "usr/lib/modules", root / "usr/lib/modules", symlinks=True)
    folder = build.modules(root, build.kernel_of(root))
    ours = Archive()
    ours.file("init", (HERE / "init.sh").read_bytes(), 0o755)
    # The kernel unpacks one archive after the other: our first process takes the place of the virtual machine's.
    (made / "initramfs").write_bytes(build.initramfs(root, folder) + ours.bytes())


def wheels(folder: Path) -> None:
    """What the server needs of Python, with the hashes of requirements/lock.txt, and what builds wheels."""
    entries = re.split(r"(?m)^# in: ", LOCK.read_text(encoding="ascii"))[1:]
    runtime = folder.with_name("runtime.txt")
    runtime.write_text(
        "".join(f"# {one}" for one in entries if "runtime" in one.partition("\n")[0].split()), encoding="ascii"
    )
    pip = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--disable-pip-version-check",
        "--only-binary",
        ":all:",
        "--dest",
        folder,
    ]
    build._run([*pip, "--require-hashes", "-r", runtime], "the wheels are not to be had")


def disk(root: Path, file: Path) -> None:
    """``root`` as an ext4 image with its journal and ROOM to spare."""
    used = sum(path.lstat().st_size for path in root.rglob("*") if path.is_file() and not path.is_symlink())
    with file.open("wb") as made:
        made.truncate(used * 5 // 4 + ROOM)
    build._run(["mkfs.ext4", "-q", "-F", "-m", "0", "-d", root, file], "mkfs.ext4 failed")


def make(folder: Path) -> Path:
    """The folder below ``folder``, made when it is not there yet; older ones are removed then."""
    wanted = folder / key()
    if (wanted / "whole").exists():
        return wanted
    build.known()
    if os.geteuid() != 0:
        raise build.BuildError("root's rights are needed to install a Debian into a folder; hint: sudo")
    folder.mkdir(parents=True, exist_ok=True)
    suite = build.os_release()["VERSION_CODENAME"]
    with tempfile.TemporaryDirectory(prefix=".make-", dir=folder) as name:
        work, made = Path(name), Path(name) / "made"
        made.mkdir()
        made.chmod(0o755)
        work.chmod(0o755)
        packages = fetch(work)
        packages.append(stand_in_grafana.make(work))
        architecture = build._run(["dpkg", "--print-architecture"], "dpkg does not say the architecture").strip()
        repository.lay_out(packages, made / "archive", suite, architecture)
        wheels(made / "wheels")
        install(made / "archive", suite, made / "root")
        kernel(work, made / "root", made, build.kernel_packages()[0])
        disk(made / "root", made / "root.ext4")
        (made / "whole").touch()
        for old in folder.iterdir():
            if old != work:
                shutil.rmtree(old, ignore_errors=True)
        made.rename(wanted)
    return wanted


def main(arguments: list[str]) -> int:
    """Make them when needed, print where they are."""
    try:
        if platform.machine() != "x86_64" or build.os_release().get("ID") != "debian":
            raise build.NoMachineError("targets are made on Debian on x86_64")
        if len(arguments) != 1 or arguments[0].startswith("-"):
            print("targets: usage: make.py FOLDER", file=sys.stderr)
            return 2
        print(make(Path(arguments[0]).absolute()))
    except build.NoMachineError as error:
        print(f"targets: {error}", file=sys.stderr)
        return 4
    except build.BuildError as error:
        print(f"targets: {error}", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
