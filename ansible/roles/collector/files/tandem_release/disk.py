"""Files and links that are at every instant whole, whenever the power goes."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


class ReleaseError(Exception):
    """One line for a person, and the exit status: 1 not now, 2 wrong, 3 this machine lacks something."""

    def __init__(self, line: str, status: int = 2) -> None:
        super().__init__(line)
        self.status = status


def sync(path: Path) -> None:
    """The file or folder is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _beside(path: Path) -> Path:
    beside = path.with_name(f".{path.name}.tandem-release")
    beside.unlink(missing_ok=True)
    return beside


def _put(beside: Path, path: Path) -> None:
    """What was made ``beside`` takes the place of ``path``, and is there after a power cut."""
    beside.replace(path)
    sync(path.parent)


def copy(source: Path, target: Path) -> None:
    """A copy with owner and rights, at every instant the old file or the new."""
    target.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    beside = _beside(target)
    owner = source.stat()
    with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as copied:
        copied.write(source.read_bytes())
    os.chown(beside, owner.st_uid, owner.st_gid)
    beside.chmod(owner.st_mode & 0o7777)
    sync(beside)
    _put(beside, target)


def write(path: Path, content: str) -> None:
    """The file has this content."""
    beside = _beside(path)
    beside.write_text(content)
    sync(beside)
    _put(beside, path)


def link(path: Path, to: str) -> None:
    """The link points there."""
    beside = _beside(path)
    beside.symlink_to(to)
    _put(beside, path)


def remove(path: Path) -> None:
    """The file or link is gone; it need not have been there."""
    if path.is_symlink() or path.exists():
        path.unlink()
        sync(path.parent)


def forgets(root: Path) -> bool:
    """Whether a layer of memory lies above a read-only root (Ansible's role ``base``): what is changed is as before at the next start."""
    return os.path.ismount(root / "media/root-ro")


def same(one: Path, other: Path) -> bool:
    """Whether both are files of one content, owner and rights."""
    if not one.is_file() or not other.is_file() or one.read_bytes() != other.read_bytes():
        return False
    a, b = one.stat(), other.stat()
    return (a.st_mode, a.st_uid, a.st_gid) == (b.st_mode, b.st_uid, b.st_gid)


def remove_tree(folder: Path) -> None:
    """The folder is gone; it need not have been there."""
    if folder.exists():
        shutil.rmtree(folder)
