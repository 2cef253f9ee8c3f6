"""Build the wheels of the folders named into OUT/RELEASE, pack them for the server, and print what was made as one JSON object.

RELEASE is the version of the last folder with a digest of all sources behind it (``0.1.0+3f2a…``), so that the same sources are built
once and other sources never pass for them. The build happens in a copy: the working tree is left as it is.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from pathlib import Path

_EPOCH = "1767225600"
"""Time stamps inside the wheels (2026-01-01, UTC seconds): the same sources make the same files."""


def sources(folder: Path, machine: str) -> list[Path]:
    """What goes into a wheel of ``folder``: its pyproject.toml, its setup.py and everything below src but what Python left there, and but
    libraries when the server's ``machine`` has another processor than this one."""
    kept = [path for path in (folder / "pyproject.toml", folder / "setup.py") if path.is_file()]
    for path in sorted((folder / "src").rglob("*")):
        left = any(part == "__pycache__" or part.endswith(".egg-info") for part in path.parts)
        foreign = path.suffix == ".so" and machine != platform.machine()
        if path.is_file() and not left and not foreign:
            kept.append(path)
    return kept


def release(folders: list[Path], machine: str) -> str:
    """Version of the last of ``folders`` and the digest of the sources of all."""
    digest = hashlib.sha256()
    for folder in folders:
        for path in sources(folder, machine):
            content = path.read_bytes()
            digest.update(f"{folder.name}/{path.relative_to(folder)}\0{len(content)}\0".encode())
            digest.update(content)
    version = tomllib.loads((folders[-1] / "pyproject.toml").read_text())["project"]["version"]
    return f"{version}+{digest.hexdigest()[:12]}"


def build(folders: list[Path], machine: str, out: Path) -> None:
    """The wheels, whole or not at all."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent) as temporary:
        made = Path(temporary) / "wheels"
        for folder in folders:
            copy = Path(temporary) / folder.name
            for path in sources(folder, machine):
                to = copy / path.relative_to(folder)
                to.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, to)
            command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
            subprocess.run(
                [*command, "--no-index", "--no-build-isolation", "--wheel-dir", str(made), str(copy)],
                check=True,
                env={**os.environ, "SOURCE_DATE_EPOCH": _EPOCH},
                stdout=sys.stderr,
            )
        try:
            made.rename(out)
        except OSError:
            if not out.is_dir():  # else another one that built the same was first
                raise


def pack(own: Path, requirements: Path, further: Path | None, to: Path) -> None:
    """One archive for the server, since forty files would take forty round trips: ``wheels/``, ``index/`` (``further``), the list."""
    fresh = to.with_suffix(f".{os.getpid()}.tmp")
    with tarfile.open(fresh, "w") as archive:
        archive.add(requirements, "runtime.txt")
        for folder, name in ((own, "wheels"), (further, "index")):
            for wheel in sorted(folder.glob("*.whl")) if folder is not None else ():
                archive.add(wheel, f"{name}/{wheel.name}")
    fresh.rename(to)


def main() -> int:
    """Exit 3 where pip or setuptools of this Python cannot build."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--requirements", type=Path, required=True, help="the list of packages with their hashes")
    parser.add_argument("--with", type=Path, dest="further", metavar="FOLDER", help="wheels that go along")
    parser.add_argument("--machine", default=platform.machine(), help="the server's processor, as uname -m names it")
    parser.add_argument("folders", type=Path, nargs="+", metavar="FOLDER")
    args = parser.parse_args()
    name = release(args.folders, args.machine)
    out = args.out.resolve() / name
    fresh = not out.is_dir()
    if fresh:
        try:
            build([folder.resolve() for folder in args.folders], args.machine, out)
        except subprocess.CalledProcessError as error:
            mend = "use the environment of ./kit provision, which has pip and setuptools"
            print(
                f"build_wheels: {sys.executable} cannot build wheels (exit {error.returncode}); mend: {mend}",
                file=sys.stderr,
            )
            return 3
    archive = out.parent / f"{name}.tar"
    pack(out, args.requirements, args.further, archive)
    print(json.dumps({"release": name, "archive": str(archive), "built": fresh}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
