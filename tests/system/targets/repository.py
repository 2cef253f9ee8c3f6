"""A package archive of the tests' own: a folder laid out as a Debian mirror is, signed with a key made for it."""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from email.utils import formatdate
from pathlib import Path

COMPONENT = "main"


def paragraph(package: Path, root: Path) -> str:
    """A package's paragraph of ``Packages``: its own control file, where it lies, how long it is and its hash."""
    control = subprocess.run(["dpkg-deb", "--field", package], capture_output=True, text=True, check=True).stdout
    content = package.read_bytes()
    told = {
        "Filename": str(package.relative_to(root)),
        "Size": str(len(content)),
        "SHA256": hashlib.sha256(content).hexdigest(),
    }
    return control.rstrip("\n") + "\n" + "".join(f"{name}: {value}\n" for name, value in told.items())


def lay_out(packages: Iterable[Path], root: Path, suite: str, architecture: str) -> None:
    """Move ``packages`` into ``root`` and write what apt reads of it; ``root/key.asc`` is the public key that signed it."""
    pool = root / "pool"
    pool.mkdir(parents=True)
    for package in packages:
        shutil.move(package, pool / package.name)
    with ThreadPoolExecutor(os.cpu_count()) as several:
        paragraphs = list(several.map(lambda package: paragraph(package, root), sorted(pool.glob("*.deb"))))
    release = root / "dists" / suite
    index = release / COMPONENT / f"binary-{architecture}"
    index.mkdir(parents=True)
    text = "\n".join(paragraphs).encode()
    (index / "Packages").write_bytes(text)
    (index / "Packages.gz").write_bytes(gzip.compress(text, mtime=0))
    files = sorted(path for path in index.iterdir())
    hashes = "".join(
        f" {hashlib.sha256(file.read_bytes()).hexdigest()} {file.stat().st_size} {file.relative_to(release)}\n"
        for file in files
    )
    (release / "Release").write_text(
        f"Origin: Tandem's tests\nSuite: {suite}\nCodename: {suite}\nDate: {formatdate(usegmt=True)}\n"
        f"Architectures: {architecture}\nComponents: {COMPONENT}\nSHA256:\n{hashes}",
        encoding="ascii",
    )
    _sign(release, root / "key.asc")


def _sign(release: Path, public: Path) -> None:
    """InRelease, by a key that nobody has afterwards."""
    # gpg's agent listens on a socket in its folder, whose path must be short.
    with tempfile.TemporaryDirectory(prefix="tandem-gpg-", dir="/tmp") as home:
        gpg = ["gpg", "--homedir", home, "--batch", "--quiet", "--pinentry-mode", "loopback", "--passphrase", ""]
        try:
            subprocess.run([*gpg, "--quick-generate-key", "Tandem's tests", "ed25519", "sign", "never"], check=True)
            subprocess.run([*gpg, "--clear-sign", "--output", release / "InRelease", release / "Release"], check=True)
            public.write_bytes(subprocess.run([*gpg, "--armor", "--export"], capture_output=True, check=True).stdout)
        finally:
            subprocess.run(["gpgconf", "--homedir", home, "--kill", "all"], check=True)
