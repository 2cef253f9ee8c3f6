"""A probe whose root is read-only below a layer of memory, over six starts each of which ends with a power cut, in a virtual machine with
Debian's kernel, initramfs-tools and overlayroot, and ``tandem-root`` of Ansible's role ``base`` (``vm/scene_read_only.py``)."""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from vm import machine

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.timeout(4800), machine.NEEDED]
PROGRAMS = machine.REPOSITORY / "ansible/roles/base/files"
SCENE = (machine.REPOSITORY / "tests/system/vm/scene_read_only.py").read_text()
STARTS = ("set up", "first", "second", "writable", "last", "as before")

MODULES = ("virtio_pci", "virtio_blk", "ext4", "crc32c_generic", "9pnet_virtio", "9p", "virtio_rng")
"""What the machine cannot do without before its root is there; overlayroot's hook adds its own."""
MAKE = """
set -e
cd "$1"
for name in dev proc; do mount --rbind /$name $name; done
linux=$(ls usr/lib/modules)
echo CONFIG_RD_GZIP=y >boot/config-$linux
exec chroot . /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin mkinitramfs -o /made $linux
"""


def initramfs(image: Path, folder: Path) -> Path:
    """The distribution's own, by its initramfs-tools with overlayroot's hook and script: made here, where no processor is emulated, and
    kept beside the machine that it is made from."""
    kept = image.with_name(f"overlayroot-{hashlib.sha256((MAKE + repr(MODULES)).encode()).hexdigest()[:16]}")
    if kept.exists():
        return kept
    tree = folder / "tree"
    tree.mkdir()
    run = functools.partial(
        subprocess.run, check=True, capture_output=True, env={"PATH": "/usr/sbin:/sbin:/usr/bin:/bin"}
    )
    run(["debugfs", "-R", f"rdump / {tree}", image])
    (tree / "boot").mkdir()
    (tree / "etc/initramfs-tools/modules").write_text("\n".join(MODULES) + "\n")
    (tree / "etc/initramfs-tools/conf.d/machine").write_text("MODULES=list\nCOMPRESS=gzip\nFSTYPE=ext4\n")
    alone = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--mount"]
    run([*alone, "sh", "-c", MAKE, "sh", tree])
    shutil.copy(tree / "made", kept.with_suffix(".new"))
    kept.with_suffix(".new").rename(kept)
    shutil.rmtree(tree)
    return kept


def disk(file: Path, size: int) -> Path:
    with file.open("wb") as made:
        made.truncate(size)
    subprocess.run(["mkfs.ext4", "-q", "-F", file], check=True, env={"PATH": "/usr/sbin:/sbin:/usr/bin:/bin"})
    return file


@pytest.fixture(scope="module")
def starts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, dict[str, Any]]]:
    folder = tmp_path_factory.mktemp("read-only")
    root, spool = folder / "root.ext4", disk(folder / "spool.ext4", 32 << 20)
    initrd = initramfs(machine.built() / "root.ext4", folder)
    subprocess.run(["cp", "--sparse=always", machine.built() / "root.ext4", root], check=True)
    # The machine's own disk has no journal, a probe's has one.
    subprocess.run(["tune2fs", "-j", root], check=True, capture_output=True, env={"PATH": "/usr/sbin:/sbin"})
    seen: dict[str, dict[str, Any]] = {}

    def start(name: str) -> None:
        print(name)
        seen[name] = machine.played(
            ["/usr/bin/python3", "{folder}/scene.py", name, str(PROGRAMS)],
            {"scene.py": SCENE, "initrd": initrd.read_bytes()} if name == "set up" else {"scene.py": SCENE},
            append="no_timer_check" if name == "set up" else "no_timer_check root=/dev/vda init=/read-only-init",
            timeout_s=900,
            memory_mb=768,
            qemu=["-drive", f"file={spool},format=raw,if=virtio"],
            root=root,
            initrd=None if name == "set up" else initrd,
        )

    try:
        for name in STARTS:
            start(name)
        yield seen
    finally:
        shutil.rmtree(folder)


def test_what_would_be_missing_at_every_start_keeps_it_writable(starts: dict[str, dict[str, Any]]) -> None:
    refused = starts["set up"]["refused"]
    for (status, said), why in zip(
        refused, ("no partition of its own; hint:", "has not enrolled", "has no overlayroot; hint:"), strict=True
    ):
        assert (status, len(said.splitlines())) == (3, 1)
        assert why in said
    assert starts["set up"]["armed"] == [0, "now writable, at the next start read-only"]


@pytest.mark.parametrize("start", ["first", "second", "last"])
def test_the_root_is_a_layer_of_memory_and_the_disk_below_is_read_only(
    starts: dict[str, dict[str, Any]], start: str
) -> None:
    assert starts[start]["root"] == "overlay"
    assert "ro" in starts[start]["lower"]
    assert starts[start]["status"] == [0, "now read-only, at the next start read-only"]


def test_a_power_cut_takes_what_is_on_the_root_and_nothing_of_the_spool(starts: dict[str, dict[str, Any]]) -> None:
    assert starts["second"]["files"] == {"/etc/lost": False, "/etc/stays": False, "/var/lib/tandem/spooled": True}


def test_what_is_kept_is_there_at_the_next_start_in_either_state(starts: dict[str, dict[str, Any]]) -> None:
    assert starts["first"]["kept"] == {"/var/lib/systemd/random-seed": "first"}
    for start in ("second", "writable", "last"):
        assert starts[start]["kept"] == {"/var/lib/chrony/drift": "1.5", "/var/lib/systemd/random-seed": "second"}


def test_a_person_makes_it_writable_for_one_start(starts: dict[str, dict[str, Any]]) -> None:
    assert starts["second"]["asked"] == [0, "now read-only, at the next start writable"]
    assert "ro" in starts["second"]["lower after"], "open for no longer than it takes"
    assert starts["writable"]["root"] == "ext4"
    assert starts["writable"]["status"] == [1, "now writable, at the next start read-only"]
    assert starts["last"]["files"] == {"/etc/lost": False, "/etc/stays": True, "/var/lib/tandem/spooled": True}


def test_a_person_makes_it_writable_until_further_notice(starts: dict[str, dict[str, Any]]) -> None:
    assert starts["last"]["stays"] == [0, "now read-only, at the next start writable"]
    assert starts["as before"]["root"] == "ext4"
    assert starts["as before"]["status"] == [1, "now writable, at the next start writable"]
