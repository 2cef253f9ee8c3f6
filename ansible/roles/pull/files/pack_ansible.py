"""This machine's ansible-core, resolvelib and ansible.posix as one archive for probes that pull.

    python pack_ansible.py FOLDER    prints the archive's path, then `made` or `there`

The same versions make the same file: fixed times and order, no byte code. ImportError: one of them is not here.
"""

from __future__ import annotations

import gzip
import io
import sys
import tarfile
from importlib import metadata, util
from pathlib import Path

FIXED_S = 1_767_225_600
"""Time of every file in it: 2026-01-01, UTC seconds."""


def place(package: str) -> Path:
    """Folder of a package."""
    found = util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise ImportError(f"{package} is not installed beside this Python")
    return Path(next(iter(found.submodule_search_locations)))


def files() -> dict[str, Path]:
    """Name in the archive → file here."""
    core, posix = place("ansible"), place("ansible_collections") / "ansible/posix"
    dist = Path(str(metadata.distribution("ansible-core").locate_file(""))) / f"ansible_core-{version()}.dist-info"
    wanted = {
        "ansible": core,
        "resolvelib": place("resolvelib"),
        "ansible_collections/ansible/posix": posix,
        dist.name: dist,
    }
    found = {}
    for name, folder in wanted.items():
        for file in sorted(folder.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts and "tests" not in file.relative_to(folder).parts[:1]:
                found[f"{name}/{file.relative_to(folder)}"] = file
    return found


def version() -> str:
    """Of ansible-core."""
    return metadata.version("ansible-core")


def main(folder: Path) -> None:
    """Make it, unless it is there."""
    top = f"ansible-{version()}"
    archive = folder / f"{top}.tar.gz"
    if archive.exists():
        print(archive.resolve(), "there", sep="\n")
        return
    folder.mkdir(parents=True, exist_ok=True)
    made = archive.with_suffix(".tmp")
    with (
        made.open("wb") as raw,
        gzip.GzipFile("", "wb", mtime=FIXED_S, fileobj=raw) as packed,
        tarfile.open(fileobj=packed, mode="w") as out,
    ):
        for name, file in sorted(files().items()):
            content = file.read_bytes()
            entry = tarfile.TarInfo(f"{top}/{name}")
            entry.size, entry.mtime, entry.mode = len(content), FIXED_S, 0o644
            out.addfile(entry, io.BytesIO(content))
    made.replace(archive)
    print(archive.resolve(), "made", sep="\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
