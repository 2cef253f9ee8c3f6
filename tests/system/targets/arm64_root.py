"""Makes what an arm64 target is made from, on a machine that is not one: ``FOLDER/KEY/`` with vmlinuz, initramfs, root.ext4 and archive/.

A Debian's packages differ between architectures; what their scripts make out of them (accounts, links, indices, rights) does not. So
this machine's own dpkg unpacks the other architecture's packages, and what belongs to no package, and everybody's rights, come from the
root that make.py installed for this machine. Only the few scripts that come before a package's files run emulated (qemu-aarch64-static,
registered with the kernel for so long). apt works on lists of its own; the machine's package system stays as it is. Needs root and,
once, the network. Standard library only.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import make
import repository

build = make.build

ARCHITECTURE = "arm64"
INPUTS = ("base.txt", "probe.txt", "init.sh", "arm64_root.py", "arm64_root.sh", "repository.py")
BINFMT = Path("/proc/sys/fs/binfmt_misc")
REGISTRATION = "tandem-arm64"
MAGIC = r"\x7f\x45\x4c\x46\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00"
MASK = r"\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff"
"""The head of an ELF program of this architecture, and which of its bits count."""
TRIPLETS = ("x86_64-linux-gnu", "aarch64-linux-gnu")
NOT_TAKEN = frozenset(
    f"/{name}" for name in (
        "dev", "proc", "sys", "run", "tmp", "var/cache/ldconfig", "usr/lib/modules", "etc/ld.so.cache", "var/lib/dpkg/info",
        "var/lib/dpkg/status", "var/lib/dpkg/status-old", "var/lib/dpkg/available", "var/lib/dpkg/arch", "var/lib/dpkg/triggers",
        "var/lib/dpkg/updates", "var/lib/dpkg/parts", "var/lib/dpkg/lock", "var/lib/dpkg/lock-frontend", "var/lib/apt/lists",
    )
)  # fmt: skip
"""What is each root's own, beside its packages."""


def key() -> str:
    """What it is made from, as one word."""
    digest = hashlib.sha256(build.key().encode())
    for name in INPUTS:
        digest.update((make.HERE / name).read_bytes())
    return digest.hexdigest()[:16]


class Apt:
    """apt for the other architecture: lists, cache and state in ``folder``, sources and keys of this machine."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._archives = folder / "archives"
        for name in ("lists/partial", "archives/partial"):
            (folder / name).mkdir(parents=True)
        (folder / "status").touch()
        options = {
            "APT::Architecture": ARCHITECTURE, "APT::Architectures": ARCHITECTURE, "Dir::State::Lists": folder / "lists",
            "Dir::State::status": folder / "status", "Dir::Cache::archives": self._archives, "Dir::Cache::pkgcache": "",
            "Dir::Cache::srcpkgcache": "", "APT::Install-Recommends": "false", "Debug::NoLocking": "true", "APT::Sandbox::User": "root",
        }  # fmt: skip
        self._options = [f"-o{name}={value}" for name, value in options.items()]
        self._said("apt-get", "-qq", "update")

    def _said(self, program: str, *words: str) -> str:
        return build._run(
            [program, *self._options, *words], f"{ARCHITECTURE} packages are not to be had", cwd=self._folder
        )

    def required(self) -> list[str]:
        """What Debian installs everywhere."""
        paragraphs = self._said("apt-cache", "dumpavail").split("\n\n")
        wanted = re.compile(r"^(Essential: yes|Priority: required)$", re.MULTILINE)
        return [text.split("\n", 1)[0].split(": ", 1)[1] for text in paragraphs if wanted.search(text)]

    def fetch(self, names: Iterable[str]) -> set[Path]:
        """``names`` with all that they need, as if nothing were installed."""
        uris = self._said("apt-get", "-qq", "-y", "--print-uris", "install", *names)
        self._said("apt-get", "-qq", "-y", "--download-only", "install", *names)
        # 'URI' FILE SIZE HASH; what is in the archives already has no line.
        return {self._archives / line.split()[1] for line in uris.splitlines()}

    def kernel(self) -> Path:
        """The distribution's kernel alone, without what a real machine would need to boot it."""
        depends = self._said("apt-cache", "depends", f"linux-image-{ARCHITECTURE}")
        name = next(line.split()[-1] for line in depends.splitlines() if "Depends: linux-image-" in line)
        self._said("apt-get", "-qq", "download", name)
        return next(self._folder.glob("linux-image-*.deb"))


@contextlib.contextmanager
def emulation() -> Iterator[None]:
    """While this lasts the kernel starts programs of the other architecture in the emulator, in any root."""
    emulator = shutil.which("qemu-aarch64-static")
    if emulator is None:
        raise build.BuildError("qemu-aarch64-static not found; hint: apt-get install qemu-user-static")
    mounted = (BINFMT / "register").exists()
    if not mounted:
        build._run(["mount", "-t", "binfmt_misc", "binfmt_misc", BINFMT], "this kernel has no binfmt_misc")
    try:
        # F: the emulator is opened now, and need not be in the root.
        (BINFMT / "register").write_text(f":{REGISTRATION}:M::{MAGIC}:{MASK}:{emulator}:F")
        yield
    finally:
        if (BINFMT / REGISTRATION).exists():
            (BINFMT / REGISTRATION).write_text("-1")
        if not mounted:
            build._run(["umount", BINFMT], "binfmt_misc stays mounted")


def _placed(path: str) -> str:
    """Where a path of dpkg's lists lies since /usr was merged."""
    return "/usr" + path if path.startswith(("/bin/", "/sbin/", "/lib/", "/lib64/")) else path


def take_over(installed: Path, root: Path) -> None:
    """From an installed Debian of this machine's architecture: what no package brought, and the rights of everything."""
    lists = (installed / "var/lib/dpkg/info").glob("*.list")
    owned = {_placed(line) for file in lists for line in file.read_text(encoding="utf-8").splitlines()}
    for top, folders, files in os.walk(installed):
        folders[:] = [name for name in folders if f"/{(Path(top) / name).relative_to(installed)}" not in NOT_TAKEN]
        for name in (*folders, *files):
            source = Path(top) / name
            path = f"/{source.relative_to(installed)}"
            target = root / path.replace(*TRIPLETS)[1:]
            # A package may have a folder where another's script makes a link: /var/run.
            linked = source.is_symlink() and target.is_dir() and not target.is_symlink()
            if path not in NOT_TAKEN and (linked or path not in owned):
                if source.is_symlink():
                    if linked:
                        shutil.rmtree(target)
                    target.unlink(missing_ok=True)
                    target.symlink_to(str(source.readlink()).replace(*TRIPLETS))
                elif source.is_dir():
                    target.mkdir(exist_ok=True)
                elif source.is_file():
                    shutil.copy2(source, target)
            if target.is_symlink() or target.exists():
                known = source.lstat()
                os.lchown(target, known.st_uid, known.st_gid)
                if not target.is_symlink():
                    target.chmod(stat.S_IMODE(known.st_mode))


def modules(kernel: Path, installed: Path, root: Path) -> None:
    """The kernel's modules into ``root``, without those that no target needs."""
    unpacked = root.parent / "kernel"
    build.unpack([kernel], unpacked)
    shutil.move(unpacked / "usr/lib/modules", root / "usr/lib/modules")
    (version,) = (path.name for path in (root / "usr/lib/modules").iterdir())
    for name in build.UNWANTED:
        shutil.rmtree(root / "usr/lib/modules" / version / "kernel" / name, ignore_errors=True)
    libraries = ":".join(map(str, (installed / "usr/lib").glob("*-linux-gnu")))
    build._run(
        ["depmod", "-b", root, version], "depmod failed",
        executable=str(installed / "usr/bin/kmod"), env={"LD_LIBRARY_PATH": libraries, "PATH": os.defpath},
    )  # fmt: skip


def install(first: list[Path], packages: list[Path], installed: Path, root: Path) -> None:
    """A Debian in ``root``, as make.install leaves one. ``first``: what the scripts that come before a package's files need."""
    build.unpack(first, root)
    native = build._run(["dpkg", "--print-architecture"], "dpkg does not say the architecture").strip()
    # Mounts and what the scripts start end with the namespaces.
    spaces = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
    script = [*spaces, "sh", "-eu", make.HERE / "arm64_root.sh", root, native, ARCHITECTURE]
    with emulation():
        build._run([*script, *packages], "the packages cannot be unpacked")
    take_over(installed, root)


def make_in(work: Path, made: Path, installed: Path) -> None:
    """Make all of it in ``made``, with what ``installed`` is; seconds by part on stderr."""
    began_s = time.monotonic()

    def told(part: str) -> None:
        print(f"{part}: {time.monotonic() - began_s:.0f} s", file=sys.stderr, flush=True)

    apt = Apt(work / "apt")
    required = apt.fetch(apt.required())
    base = required | apt.fetch([*make.listed("base.txt"), *apt.required(), "busybox-static"])
    packages = base | apt.fetch(make.listed("probe.txt"))
    kernel = apt.kernel()
    told("fetched")
    suite = build.os_release()["VERSION_CODENAME"]
    repository.lay_out(sorted(packages), made / "archive", suite, ARCHITECTURE)
    told("archive")
    root, pool = work / "root", made / "archive/pool"
    install(*([pool / path.name for path in sorted(some)] for some in (required, base)), installed, root)
    key_of_archive = root / "etc/apt/trusted.gpg.d/tandem-tests.asc"
    shutil.copy(made / "archive/key.asc", key_of_archive)
    modules(kernel, installed, root)
    told("installed")
    shutil.copy(next((work / "kernel/boot").glob("vmlinuz-*")), made / "vmlinuz")
    archive = build.Archive()
    archive.file("init", (make.HERE / "init.sh").read_bytes(), 0o755)
    folder = root / "usr/lib/modules" / build.kernel_of(root)
    (made / "initramfs").write_bytes(build.initramfs(root, folder) + archive.bytes())
    make.disk(root, made / "root.ext4")
    told("disk")


def made_in(folder: Path, targets: Path) -> Path:
    """The folder below ``folder``, made when it is not there yet; older ones are removed then.
    ``targets``: make.py's."""
    wanted = folder / key()
    if (wanted / "whole").exists():
        return wanted
    build.known()
    if os.geteuid() != 0:
        raise build.BuildError("root's rights are needed to install a Debian into a folder; hint: sudo")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".make-", dir=folder) as name:
        work, made = Path(name), Path(name) / "made"
        made.mkdir()
        for path in (work, made):
            path.chmod(0o755)
        make_in(work, made, make.make(targets) / "root")
        (made / "whole").touch()
        for old in folder.iterdir():
            if old != work:
                shutil.rmtree(old, ignore_errors=True)
        made.rename(wanted)
    return wanted
