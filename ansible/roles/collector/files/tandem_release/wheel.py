"""A wheel's files, each as its RECORD says (the wheel format: packaging.python.org, binary distribution format, 1.0)."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tandem_release.disk import ReleaseError

MOST_BYTES = 200_000_000
"""Of a wheel, and of all that is in one."""


@dataclass(frozen=True, slots=True)
class Wheel:
    """``files``: content by path below site-packages; ``sha256``: of the whole wheel."""

    version: str
    sha256: str
    files: dict[str, bytes]


def read(path: Path) -> Wheel:
    """The wheel in ``path``; ReleaseError for anything that is not a whole wheel of Python code alone."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ReleaseError(f"{path}: larger than {MOST_BYTES} bytes; mend: build it anew")
        content = path.read_bytes()
    except OSError as error:
        raise ReleaseError(f"{path}: {error.strerror}; mend: name a wheel") from error
    try:
        files = _unpacked(content)
        return Wheel(_checked(files), hashlib.sha256(content).hexdigest(), files)
    # What zipfile makes of bytes that are no archive: its own error, or those of what it unpacks with and reads by.
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        OSError,
        ValueError,
        KeyError,
        RuntimeError,
        NotImplementedError,
    ) as error:
        raise ReleaseError(f"{path}: no whole wheel ({error}); mend: build and copy it anew") from error


def _unpacked(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        entries = [entry for entry in archive.infolist() if not entry.is_dir()]
        if sum(entry.file_size for entry in entries) > MOST_BYTES:
            raise ValueError(f"unpacked larger than {MOST_BYTES} bytes")
        for entry in entries:
            parts = PurePosixPath(entry.filename).parts
            if entry.filename != "/".join(parts) or ".." in parts or "\0" in entry.filename or parts[0] == "/":
                raise ValueError(f"a file outside of it: {entry.filename!r}")
            if parts[0].endswith(".data"):
                raise ValueError(f"more than Python code: {entry.filename!r}")
        return {entry.filename: archive.read(entry) for entry in entries}


def _checked(files: dict[str, bytes]) -> str:
    """The version; ValueError when a file is missing, another one, or one too many."""
    records = [name for name in files if name.endswith(".dist-info/RECORD") and name.count("/") == 1]
    if len(records) != 1:
        raise ValueError(f"{len(records)} RECORDs")
    unseen = set(files) - {records[0]}
    for row in csv.reader(io.StringIO(files[records[0]].decode())):
        if len(row) != 3:
            raise ValueError("a line of RECORD without three parts")
        name, expected, _size = row
        if name == records[0]:
            continue
        if name not in unseen:
            raise ValueError(f"{name}: in RECORD and not there, or there twice")
        unseen.remove(name)
        digest = base64.urlsafe_b64encode(hashlib.sha256(files[name]).digest()).rstrip(b"=").decode()
        if expected != f"sha256={digest}":
            raise ValueError(f"{name}: not as RECORD says")
    if unseen:
        raise ValueError(f"{min(unseen)}: not in RECORD")
    metadata = files[records[0].removesuffix("RECORD") + "METADATA"].decode()
    for line in metadata.splitlines():
        if line.startswith("Version: "):
            return line.removeprefix("Version: ").strip()
    raise ValueError("METADATA without a version")
