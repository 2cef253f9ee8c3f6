"""Builds the virtual machine of the system tests: the distribution's own kernel, an initramfs, a root file system.

Nothing is installed and no package's script runs: apt resolves and fetches as if nothing were there, dpkg unpacks. The result is
``FOLDER/KEY/`` with ``vmlinuz``, ``initramfs`` and ``root.ext4``, on Debian 12 also ``vmlinuz-6.12`` and ``initramfs-6.12``; KEY is the
hash of what it is made from, so it is made once and works offline from then on.
Standard library only: the kit runs it with the system's Python.

Exit status: 0, 3 when the build failed, 4 when no machine is known for this system: the one case in which the kit goes on without.
"""

from __future__ import annotations

import compileall
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from initramfs import MODULES_FIRST, Archive, plain_module

HERE = Path(__file__).resolve().parent
INPUTS = ("build.py", "initramfs.py", "init.sh", "packages.txt")

KERNELS = {
    "debian": ("linux-image-amd64", ()),
    # The gadget stack's dummy controller lies in the extra modules; the meta package would bring half a gigabyte of firmware.
    "ubuntu": ("linux-image-generic", ("linux-modules-", "linux-modules-extra-")),
}
"""By distribution: the meta package that names today's kernel, and prefixes of the packages that hold its modules."""

LATER = "linux-image-6.12-amd64"
"""A second kernel where the distribution has it: that of the release after it. Of its modules there are only those in the initramfs."""

UNWANTED = (
    "drivers/gpu", "drivers/media", "drivers/infiniband", "drivers/net/ethernet", "drivers/net/wireless", "drivers/scsi",
    "drivers/staging", "drivers/iio", "drivers/hwmon", "drivers/isdn", "drivers/target", "drivers/md", "drivers/mtd",
    "drivers/input", "drivers/platform", "drivers/bluetooth", "drivers/ata", "drivers/hid", "drivers/nvme", "drivers/message",
    "drivers/edac", "drivers/video", "sound", "fs/ocfs2", "fs/xfs", "fs/btrfs", "fs/ceph", "fs/nfs", "fs/nfsd", "fs/smb",
    "fs/cifs", "fs/gfs2", "fs/f2fs", "fs/jfs", "fs/reiserfs", "net/bluetooth", "net/mac80211", "net/wireless", "net/sunrpc",
    "net/ceph", "net/tipc", "net/rds", "net/batman-adv", "net/sctp",
)  # fmt: skip
"""Folders of modules that no test here needs: two thirds of the kernel package."""

UNWANTED_ROOT = (
    "usr/share/dbus-1/system-services",  # services run when a test starts them, not when somebody calls them
    "usr/share/doc",
    "usr/share/man",
    "usr/share/locale",
    "usr/share/info",
    "usr/share/lintian",
    "boot",
)


ACCOUNTS = ("messagebus", "tcpdump", "dnsmasq", "polkitd", "systemd-network")
GROUPS = ("netdev", "render", "sgx", "kvm", "input")
"""What the packages' scripts would add and their programs and rules name."""


class BuildError(RuntimeError):
    """The machine cannot be built; the message is one line with the mend."""


class NoMachineError(BuildError):
    """None is known for this system: nothing went wrong, and nothing can be mended."""


def os_release() -> dict[str, str]:
    """/etc/os-release, its values without quotes."""
    lines = Path("/etc/os-release").read_text(encoding="utf-8").splitlines()
    return {name: value.strip("\"'") for name, _, value in (line.partition("=") for line in lines) if name}


def key() -> str:
    """What the machine is made from, as one word: the builder, its lists, the distribution's release."""
    digest = hashlib.sha256()
    for name in INPUTS:
        digest.update((HERE / name).read_bytes())
    release = os_release()
    digest.update(f"{release.get('ID')} {release.get('VERSION_ID')} {platform.machine()}".encode())
    return digest.hexdigest()[:16]


def _run(argv: list[str | Path], why: str, **more: object) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, check=False, **more)  # type: ignore[call-overload]
    if done.returncode != 0:
        words = (done.stderr or done.stdout).strip().splitlines()
        raise BuildError(f"{why}: {words[-1] if words else f'exit status {done.returncode}'}")
    return str(done.stdout)


def known() -> tuple[str, tuple[str, ...]]:
    """The row of KERNELS for this system; NoMachineError when it has none."""
    distribution = os_release().get("ID", "")
    if distribution not in KERNELS or platform.machine() != "x86_64":
        raise NoMachineError(
            f"no machine for {distribution or 'a system without a name'} on {platform.machine()}; known: Debian and Ubuntu on x86_64"
        )
    return KERNELS[distribution]


def image_package(meta: str) -> str:
    """The package of the kernel that ``meta`` names."""
    depends = _run(["apt-cache", "depends", meta], f"{meta} is not to be had")
    images = [line.split()[-1] for line in depends.splitlines() if "Depends: linux-image-" in line]
    if not images:
        raise BuildError(f"{meta} names no kernel; hint: apt-get update")
    return images[0]


def kernel_packages() -> list[str]:
    """The packages with today's kernel and its modules, by what this distribution's lists say."""
    meta, modules = known()
    images = [image_package(meta)]
    return [images[0], *(images[0].replace("linux-image-", prefix, 1) for prefix in modules)]


def fetch(packages: list[str], folder: Path) -> list[Path]:
    """Download ``packages`` and all that they need."""
    nothing = folder / "nothing-installed"
    nothing.touch()
    archives = folder / "archives"
    (archives / "partial").mkdir(parents=True)
    options = {
        "Dir::State::status": nothing, "Dir::Cache::archives": archives, "Dir::Cache::pkgcache": "", "Dir::Cache::srcpkgcache": "",
        "APT::Install-Recommends": "false", "Debug::NoLocking": "true", "APT::Sandbox::User": "root",
    }  # fmt: skip
    chosen = [f"-o{name}={value}" for name, value in options.items()]
    _run(
        ["apt-get", "-qq", "-y", "--download-only", *chosen, "install", *packages], "apt-get cannot fetch the packages"
    )
    return sorted(archives.glob("*.deb"))


def unpack(packages: list[Path], root: Path) -> None:
    """Unpack into ``root``, the folder that is a link in a merged /usr made first."""
    root.mkdir()
    for name in ("bin", "sbin", "lib", "lib64"):
        (root / "usr" / name).mkdir(parents=True)
        (root / name).symlink_to(f"usr/{name}")
    for package in packages:
        # --keep-directory-symlink is dpkg-deb's tar's: an old package with /bin/x follows the link instead of replacing it.
        with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE) as stream:
            _run(
                ["tar", "-x", "-C", root, "--keep-directory-symlink"],
                f"cannot unpack {package.name}",
                stdin=stream.stdout,
            )
        if stream.returncode != 0:
            raise BuildError(f"cannot read {package.name}; hint: run it again")


def settle(root: Path) -> None:
    """Do the little of the packages' scripts that the tests need: accounts, alternatives, places to mount."""
    shutil.copy(root / "usr/share/base-passwd/passwd.master", root / "etc/passwd")
    shutil.copy(root / "usr/share/base-passwd/group.master", root / "etc/group")
    with (root / "etc/passwd").open("a") as passwd, (root / "etc/group").open("a") as group:
        for number, name in enumerate(ACCOUNTS, 100):
            passwd.write(f"{name}:x:{number}:{number}::/nonexistent:/usr/sbin/nologin\n")
            group.write(f"{name}:x:{number}:\n")
        for number, name in enumerate(GROUPS, 200):
            group.write(f"{name}:x:{number}:\n")
        passwd.write("tandem:x:1000:1000::/tmp:/bin/sh\n")
        group.write("tandem:x:1000:\n")
    (root / "etc/hosts").write_text("127.0.0.1 localhost vm\n", encoding="ascii")
    (root / "etc/resolv.conf").touch()
    (root / "etc/nsswitch.conf").write_text("passwd: files\ngroup: files\nhosts: files dns\n", encoding="ascii")
    (root / "etc/machine-id").write_text("0" * 31 + "1\n", encoding="ascii")
    for name in ("proc", "sys", "dev", "run", "tmp", "root", "var/tmp", "var/lib/misc", "srv", "mnt"):
        (root / name).mkdir(parents=True, exist_ok=True)
    for name, target in (("var/run", "/run"), ("var/lock", "/run/lock")):
        (root / name).rmdir()  # the packages carry folders; a script of base-files makes the links
        (root / name).symlink_to(target)
    for name in UNWANTED_ROOT:
        shutil.rmtree(root / name, ignore_errors=True)


def kernel_of(root: Path) -> str:
    """The version whose modules lie in ``root``."""
    versions = sorted(path.name for path in (root / "usr/lib/modules").iterdir() if (path / "kernel").is_dir())
    if len(versions) != 1:
        raise BuildError(f"one kernel expected in the packages, there are {len(versions)}")
    return versions[0]


def modules(root: Path, version: str, programs: Path | None = None) -> Path:
    """Leave out what no test needs and write the modules' index, by ``root``'s depmod or that in ``programs``; the folder of modules."""
    programs = programs or root
    folder = root / "usr/lib/modules" / version
    for name in UNWANTED:
        shutil.rmtree(folder / "kernel" / name, ignore_errors=True)
    libraries = ":".join(map(str, sorted((programs / "usr/lib").glob("*-linux-gnu"))))
    # The unpacked distribution is that of this machine, so its programs run here.
    _run(
        ["depmod", "-b", root, version],
        "depmod failed",
        executable=str(programs / "usr/bin/kmod"),
        env={"LD_LIBRARY_PATH": libraries, "PATH": os.environ.get("PATH", os.defpath)},
    )
    return folder


def initramfs(root: Path, folder: Path) -> bytes:
    """busybox, the modules that find the root, and the script that goes on from there."""
    archive = Archive()
    archive.file("bin/busybox", (root / "usr/bin/busybox").read_bytes(), 0o755)
    archive.file("init", (HERE / "init.sh").read_bytes(), 0o755)
    needs: dict[str, list[str]] = {}
    for line in (folder / "modules.dep").read_text(encoding="ascii").splitlines():
        module, _, before = line.partition(":")
        needs[module] = [*reversed(before.split()), module]
    by_name = {Path(path).name.split(".")[0].replace("-", "_"): path for path in needs}
    order: list[str] = []
    for name in MODULES_FIRST:
        if name in by_name:  # else it is built into this kernel
            order += [path for path in needs[by_name[name]] if path not in order]
    for number, path in enumerate(order):
        archive.file(f"modules/{number:02}.ko", plain_module(folder / path), 0o644)
    return archive.bytes()


def later_kernel(root: Path, work: Path, made: Path) -> None:
    """LATER's image and initramfs into ``made``, if the distribution's lists have it; ``root`` lends its depmod."""
    if not _run(["apt-cache", "search", "--names-only", f"^{LATER}$"], "apt-cache failed").strip():
        return
    folder = work / "later"
    folder.mkdir()
    package = image_package(LATER)
    _run(["apt-get", "-qq", "download", package], f"{package} is not to be had", cwd=folder)
    unpack(list(folder.glob("*.deb")), folder / "root")
    shutil.copy(next((folder / "root/boot").glob("vmlinuz-*")), made / "vmlinuz-6.12")
    placed = modules(folder / "root", kernel_of(folder / "root"), root)
    (made / "initramfs-6.12").write_bytes(initramfs(root, placed))


def bytecode(root: Path) -> None:
    """Compile Python's library, as its packages' scripts would: on an emulated processor each start would do it again."""
    for library in sorted((root / "usr/lib").glob("python3*")):
        # This Python is the distribution's, so its byte code is that of the one in the machine.
        compileall.compile_dir(str(library), quiet=2, stripdir=str(root), prependdir="/", workers=os.cpu_count() or 1)


def image(root: Path, file: Path) -> None:
    """The root as an ext4 image, with room to write."""
    used = sum(path.lstat().st_size for path in root.rglob("*") if path.is_file() and not path.is_symlink())
    with file.open("wb") as made:
        made.truncate(used * 5 // 4 + (600 << 20))
    program = shutil.which("mkfs.ext4", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")
    if program is None:
        raise BuildError("mkfs.ext4 not found; hint: apt-get install e2fsprogs")
    _run([program, "-q", "-F", "-m", "0", "-O", "^has_journal", "-d", root, file], "mkfs.ext4 failed")


def build(folder: Path) -> Path:
    """The machine's folder below ``folder``, built when it is not there yet; older ones are removed then."""
    wanted = folder / key()
    if (wanted / "root.ext4").exists():
        return wanted
    known()
    if os.geteuid() != 0:
        # So that the image's files belong to root.
        if shutil.which("fakeroot") is None:
            raise BuildError("fakeroot not found; hint: apt-get install fakeroot")
        _run(["fakeroot", "--", sys.executable, __file__, folder], "the build under fakeroot failed")
        return wanted
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".build-", dir=folder) as name:
        work = Path(name)
        kernel = kernel_packages()
        listed = (line.strip() for line in (HERE / "packages.txt").read_text(encoding="ascii").splitlines())
        extras = kernel[1:]
        packages = fetch([line for line in listed if line and not line.startswith("#")] + extras, work)
        root, made = work / "root", work / "made"
        made.mkdir()
        # The kernel itself without what it would need for booting a real machine.
        _run(["apt-get", "-qq", "download", kernel[0]], f"{kernel[0]} is not to be had", cwd=work)
        unpack([*packages, *work.glob("linux-image-*.deb")], root)
        shutil.copy(next((root / "boot").glob("vmlinuz-*")), made / "vmlinuz")
        settle(root)
        bytecode(root)
        (made / "initramfs").write_bytes(initramfs(root, modules(root, kernel_of(root))))
        later_kernel(root, work, made)
        image(root, made / "root.ext4")
        for old in folder.iterdir():
            if old != work:
                shutil.rmtree(old, ignore_errors=True)
        made.rename(wanted)
    return wanted


def main(arguments: list[str]) -> int:
    """``build.py FOLDER``: build it when needed, print where it is; ``build.py --known``: only whether one is known."""
    try:
        if arguments == ["--known"]:
            known()
        elif len(arguments) == 1 and not arguments[0].startswith("-"):
            print(build(Path(arguments[0]).absolute()))
        else:
            print("vm: usage: build.py FOLDER | --known", file=sys.stderr)
            return 2
    except NoMachineError as error:
        print(f"vm: {error}", file=sys.stderr)
        return 4
    except BuildError as error:
        print(f"vm: {error}", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
