"""Which disks there are, and which of them may be written: removable, whole, not in use. Read from sysfs and mountinfo, changes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tandem_image.errors import RefusedError

SECTOR = 512  # sysfs counts in these, whatever the disk's own are
_NEVER = ("loop", "ram", "zram", "dm-", "md", "sr", "fd", "nbd")


@dataclass(frozen=True)
class Disk:
    """A whole disk. ``uses``: what holds it, in words; empty when nothing does."""

    name: str
    path: Path
    size_bytes: int
    model: str
    removable: bool
    read_only: bool
    uses: tuple[str, ...]


def disks(sysfs: Path = Path("/sys"), proc: Path = Path("/proc")) -> list[Disk]:
    """Every real disk, by name."""
    folders = sorted((sysfs / "block").iterdir()) if (sysfs / "block").is_dir() else []
    return [_disk(folder, proc) for folder in folders if not folder.name.startswith(_NEVER)]


def choose(device: Path, needed_bytes: int, sysfs: Path = Path("/sys"), proc: Path = Path("/proc")) -> Disk:
    """The disk at ``device``, if it may be written. Raises RefusedError with the reason, and its mend."""
    try:
        name = device.resolve(strict=True).name
    except OSError:
        raise RefusedError(f"there is no {device}; mend: tandem-image --cards says what is plugged in") from None
    if not (sysfs / "block" / name).is_dir():
        whole = sysfs / "class/block" / name / "partition"
        mend = (
            "give the whole disk, without the partition's number"
            if whole.exists()
            else "tandem-image --cards says what is plugged in"
        )
        raise RefusedError(f"{device} is not a whole disk; mend: {mend}")
    if name.startswith(_NEVER):
        raise RefusedError(f"{device} is no card; mend: tandem-image --cards says what is plugged in")
    disk = _disk(sysfs / "block" / name, proc)
    if not disk.removable:
        raise RefusedError(
            f"{device} ({disk.model}) is not removable, and never written; mend: put the card into a reader and give that"
        )
    if disk.uses:
        raise RefusedError(
            f"{device} ({disk.model}) is in use ({', '.join(disk.uses)}); mend: unmount it (umount {disk.path}*), or is it another one?"
        )
    if disk.read_only:
        raise RefusedError(f"{device} ({disk.model}) is read-only; mend: slide the card's lock")
    if disk.size_bytes == 0:
        raise RefusedError(f"{device} ({disk.model}) is empty; mend: put a card into it")
    if disk.size_bytes < needed_bytes:
        raise RefusedError(
            f"{device} has {disk.size_bytes} bytes and {needed_bytes} are needed; mend: a larger card, or a smaller --root-size"
        )
    return disk


def _disk(folder: Path, proc: Path) -> Disk:
    name = folder.name
    model = " ".join(
        word
        for word in (_text(folder / "device/vendor"), _text(folder / "device/model") or _text(folder / "device/name"))
        if word
    )
    # A reader that is built in says of its card that it is an SD card, and of itself not that it is removable.
    removable = _text(folder / "removable") == "1" or (
        name.startswith("mmcblk") and _text(folder / "device/type") == "SD"
    )
    size = _text(folder / "size")
    return Disk(
        name,
        Path("/dev") / name.replace("!", "/"),
        int(size) * SECTOR if size.isdecimal() else 0,
        model or "no name told",
        removable,
        _text(folder / "ro") == "1",
        _uses(folder, proc),
    )


def _uses(folder: Path, proc: Path) -> tuple[str, ...]:
    parts = [folder, *(entry for entry in sorted(folder.iterdir()) if (entry / "partition").exists())]
    numbers = {_text(part / "dev"): part.name for part in parts}
    uses = []
    for line in _text(proc / "self/mountinfo").splitlines():
        fields = line.split(" ")
        if len(fields) > 4 and fields[2] in numbers:
            uses.append(f"{numbers[fields[2]]} mounted on {_unescaped(fields[4])}")
    for line in _text(proc / "swaps").splitlines()[1:]:
        swap = Path(line.split(" ", 1)[0]).name
        uses += [f"{part.name} is swap" for part in parts if part.name == swap]
    for part in parts:
        holders = part / "holders"
        if holders.is_dir():
            uses += [f"{part.name} belongs to {holder.name}" for holder in sorted(holders.iterdir())]
    return tuple(dict.fromkeys(uses))


def _unescaped(text: str) -> str:
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, character)
    return text


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""
