"""A backup as files: ``FOLDER/traces`` (the pool) and ``FOLDER/TIME`` with ``backup.json``, which names each file with its hash."""

from __future__ import annotations

import grp
import hashlib
import json
import os
import pwd
import shutil
import stat
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import tandem_server
from tandem_server.cli.stop import ConfigError

FORMAT = "tandem-backup/1"
NAME = "%Y%m%dT%H%M%SZ"
"""A backup's folder: when it was begun, UTC."""
POOL = "traces"
_LIST = "backup.json"


@dataclass(frozen=True, slots=True)
class Also:
    """A further file: ``file`` inside the backup, ``path`` where it belongs; owner and group by name."""

    file: str
    path: str
    owner: str
    group: str
    mode: int


@dataclass(frozen=True, slots=True)
class Kept:
    """What a backup says of itself. ``database``: its name, None where it was not the private one; ``traces``: how many the registry
    has in the folder."""

    name: str
    database: str | None
    traces: int
    also: list[Also]


def describe(copied: tuple[Path, Path], path: str) -> Also:
    """How the original of a copy is owned."""
    source, copy = copied
    of = source.stat()
    return Also(
        f"also/{copy.name}",
        path,
        pwd.getpwuid(of.st_uid).pw_name,
        grp.getgrgid(of.st_gid).gr_name,
        stat.S_IMODE(of.st_mode),
    )


def backups_in(folder: Path) -> list[Path]:
    """Those that are whole, the oldest first."""
    return sorted(path for path in folder.iterdir() if _is_name(path.name) and (path / _LIST).is_file())


def copy_whole(source: Path, to: Path, mode: int = 0o600) -> None:
    """There whole or not at all, and on the disk."""
    to.parent.mkdir(parents=True, exist_ok=True)
    fresh = to.with_name(f".{to.name}.tmp")
    with source.open("rb") as reading, fresh.open("wb") as writing:
        shutil.copyfileobj(reading, writing, 1024 * 1024)
        writing.flush()
        os.fsync(writing.fileno())
    fresh.chmod(mode)
    fresh.rename(to)


def sync_folder(folder: Path) -> None:
    """Its names, and what is below it, are on the disk."""
    for path in (folder, *folder.rglob("*")):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_kept(folder: Path, kept: Kept) -> None:
    """``backup.json``, last: a backup without it is none."""
    files = {
        str(path.relative_to(folder)): {"bytes": path.stat().st_size, "sha256": _sha256(path)}
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    also = [{"file": a.file, "path": a.path, "owner": a.owner, "group": a.group, "mode": a.mode} for a in kept.also]
    told = {"format": FORMAT, "version": tandem_server.__version__, "name": kept.name, "database": kept.database}
    (folder / _LIST).write_text(
        json.dumps({**told, "traces": kept.traces, "also": also, "files": files}, indent=1) + "\n"
    )


def read_kept(folder: Path) -> Kept:
    """The backup in ``folder``, each file's hash looked at; ConfigError when it is none or not whole."""
    file = folder / _LIST
    try:
        told = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(
            f"{file}: {error}; hint: name a folder that `tandem-server backup` made, with its time as its name"
        ) from None
    try:
        kept, files = _read(told)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ConfigError(f"{file}: not of the format {FORMAT} ({error!r}); hint: use another backup") from None
    for name, (size, sha256) in files.items():
        path = folder / name
        if not path.is_file() or path.stat().st_size != size or _sha256(path) != sha256:
            raise ConfigError(f"{path}: not as it was backed up; hint: copy the backup anew, or use another one")
    return kept


def _read(told: dict[str, Any]) -> tuple[Kept, dict[str, tuple[int, str]]]:
    if told["format"] != FORMAT:
        raise ValueError(told["format"])
    also = [
        Also(inside(a["file"]), str(Path("/") / a["path"]), str(a["owner"]), str(a["group"]), int(a["mode"]) & 0o7777)
        for a in told["also"]
    ]
    files = {inside(name): (int(of["bytes"]), str(of["sha256"])) for name, of in told["files"].items()}
    for one in also:
        if one.file not in files:
            raise ValueError(one.file)
    database = told["database"]
    if database is not None and not isinstance(database, str):
        raise TypeError(database)
    return Kept(str(told["name"]), database, int(told["traces"]), also), files


def inside(name: str) -> str:
    """A name that stays in the backup; ValueError."""
    path = Path(name)
    if path.is_absolute() or ".." in path.parts or "\0" in name or not path.parts:
        raise ValueError(name)
    return name


def _is_name(name: str) -> bool:
    try:
        datetime.strptime(name, NAME)  # noqa: DTZ007  (only whether it is one)
    except ValueError:
        return False
    return True


def _sha256(path: Path) -> str:
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
