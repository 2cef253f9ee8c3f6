"""Only a removable disk that nobody uses is written; and what it gives back is compared."""

import errno
import os
from pathlib import Path

import pytest

from tandem_image import card, disks
from tandem_image.errors import RefusedError

GB = 1_000_000_000


class Machine:
    """A sysfs, a /proc and a /dev as Linux presents them."""

    def __init__(self, folder: Path) -> None:
        self.sys, self.proc, self.dev = folder / "sys", folder / "proc", folder / "dev"
        (self.sys / "class/block").mkdir(parents=True)
        (self.sys / "block").mkdir()
        (self.proc / "self").mkdir(parents=True)
        self.dev.mkdir()
        (self.proc / "self/mountinfo").write_text("22 1 0:21 / / rw,relatime shared:1 - overlay overlay rw\n")
        (self.proc / "swaps").write_text("Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n")

    def disk(
        self,
        name: str,
        /,
        number: str = "8:16",
        removable: str = "1",
        size: int = 32 * GB,
        ro: str = "0",
        **device: str,
    ) -> Path:
        folder = self.sys / "block" / name
        (folder / "device").mkdir(parents=True)
        (folder / "holders").mkdir()
        for key, value in {"removable": removable, "size": str(size // 512), "ro": ro, "dev": number}.items():
            (folder / key).write_text(value + "\n")
        for key, value in {"vendor": "Generic ", "model": "MassStorageClass", **device}.items():
            (folder / "device" / key).write_text(value + "\n")
        (self.sys / "class/block" / name).symlink_to(folder)
        (self.dev / name).write_bytes(b"")
        return folder

    def partition(self, disk: Path, name: str, number: str) -> Path:
        folder = disk / name
        (folder / "holders").mkdir(parents=True)
        (folder / "partition").write_text("1\n")
        (folder / "dev").write_text(number + "\n")
        (self.sys / "class/block" / name).symlink_to(folder)
        (self.dev / name).write_bytes(b"")
        return folder

    def choose(self, name: str, needed: int = 10 * GB) -> disks.Disk:
        return disks.choose(self.dev / name, needed, self.sys, self.proc)


@pytest.fixture
def machine(tmp_path) -> Machine:
    return Machine(tmp_path)


def test_a_card_in_a_reader_is_taken(machine):
    machine.disk("sdb")
    chosen = machine.choose("sdb")
    assert (chosen.name, chosen.size_bytes, chosen.model) == ("sdb", 32 * GB, "Generic MassStorageClass")


def test_a_card_in_a_built_in_reader_is_taken_and_a_soldered_memory_is_not(machine):
    machine.disk("mmcblk0", removable="0", type="SD", name="SC32G")
    machine.disk("mmcblk1", number="179:8", removable="0", type="MMC")
    assert machine.choose("mmcblk0").removable
    with pytest.raises(RefusedError, match=r"not removable, and never written; mend"):
        machine.choose("mmcblk1")


def test_what_is_mounted_is_refused_by_the_place(machine):
    machine.partition(machine.disk("sdb"), "sdb1", "8:17")
    (machine.proc / "self/mountinfo").write_text("36 22 8:17 / /media/me/boot\\040fs rw - vfat /dev/sdb1 rw\n")
    with pytest.raises(RefusedError, match=r"sdb1 mounted on /media/me/boot fs.*mend: unmount"):
        machine.choose("sdb")


def test_a_disk_that_is_mounted_whole_is_refused(machine):
    machine.disk("sdb")
    (machine.proc / "self/mountinfo").write_text("36 22 8:16 / /mnt rw - ext4 /dev/sdb rw\n")
    with pytest.raises(RefusedError, match="sdb mounted on /mnt"):
        machine.choose("sdb")


def test_swap_and_what_belongs_to_a_volume_are_refused(machine):
    disk = machine.disk("sdb")
    part = machine.partition(disk, "sdb2", "8:18")
    (machine.proc / "swaps").write_text("Filename\tType\n/dev/sdb2 partition 1 0 -2\n")
    with pytest.raises(RefusedError, match="sdb2 is swap"):
        machine.choose("sdb")
    (machine.proc / "swaps").write_text("Filename\tType\n")
    (part / "holders/dm-0").mkdir()
    with pytest.raises(RefusedError, match="sdb2 belongs to dm-0"):
        machine.choose("sdb")


def test_a_partition_is_refused_with_the_mend(machine):
    machine.partition(machine.disk("sdb"), "sdb1", "8:17")
    with pytest.raises(RefusedError, match="without the partition's number"):
        machine.choose("sdb1")


@pytest.mark.parametrize(
    ("change", "said"),
    [({"size": 0}, "put a card into it"), ({"size": 4 * GB}, "a larger card"), ({"ro": "1"}, "the card's lock")],
)
def test_no_card_a_small_one_and_a_locked_one_are_refused(machine, change, said):
    machine.disk("sdb", **change)
    with pytest.raises(RefusedError, match=said):
        machine.choose("sdb")


def test_a_file_and_a_name_that_is_not_there_are_refused(machine):
    (machine.dev / "plain").write_bytes(b"")
    for name, said in (("plain", "not a whole disk"), ("none", "there is no")):
        with pytest.raises(RefusedError, match=said):
            machine.choose(name)


def test_this_machines_disks_are_read_without_a_mistake():
    for disk in disks.disks():
        assert disk.path == Path("/dev") / disk.name


def test_an_image_is_written_and_read_back(tmp_path):
    image, device = tmp_path / "image", tmp_path / "card"
    image.write_bytes(os.urandom(9 << 20))
    device.write_bytes(bytes(12 << 20))
    steps = []
    digest = card.write(image, device, lambda step, done: steps.append((step, done)))
    assert device.read_bytes() == image.read_bytes() + bytes(3 << 20)
    assert len(digest) == 64
    assert steps[-1] == ("compare", 9 << 20)
    assert ("write", 9 << 20) in steps


def test_a_card_that_gives_back_something_else_is_told_with_the_place(tmp_path, monkeypatch):
    image, device = tmp_path / "image", tmp_path / "card"
    image.write_bytes(bytes(9 << 20))
    device.write_bytes(bytes(9 << 20))
    real = os.pread

    def lying(fd: int, length: int, offset: int) -> bytes:
        read = bytearray(real(fd, length, offset))
        if offset <= 5_000_000 < offset + len(read):
            read[5_000_000 - offset] ^= 1
        return bytes(read)

    monkeypatch.setattr(os, "pread", lying)
    with pytest.raises(RefusedError, match=r"something else at byte 5000000; mend: throw this card away"):
        card.write(image, device, lambda *_: None)


def test_a_card_that_is_full_too_early_is_told(tmp_path, monkeypatch):
    image, device = tmp_path / "image", tmp_path / "card"
    image.write_bytes(bytes(5 << 20))
    device.write_bytes(b"")

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(RefusedError, match="another card or another reader"):
        card.write(image, device, lambda *_: None)
