"""What the pinned packages are: ``./kit audit``, and part of the tests. Reads files and what is installed; asks no network by itself.

Known holes are told by pip-audit and cargo-audit, where they are installed: they ask their services. Without them nothing is said about
holes, and the last lines say so.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

HERE = Path(__file__).parent
LISTS = ("runtime.txt", "notebook.txt", "hardware.txt", "provision.txt", "dev.txt")
APART = ("validators.txt",)
"""Installed into environments of their own: pinned as the others, with versions of their own."""
OURS = {
    "tandem-probe",
    "tandem-server",
    "tandem-bench",
    "tandem-dashboards",
    "tandem-image",
    "tandem-hardware",
    "tandem-fleet",
}
TOOLS = {"pip"}
"""In every environment, and in no list."""

LICENCES = {
    "0bsd", "apache-2.0", "apache software license", "apache 2.0", "bsd", "bsd license", "bsd 2-clause license", "bsd-2-clause",
    "bsd-3-clause", "cc0-1.0", "mit", "mit license", "mit-0", "mit-cmu", "mozilla public license 2.0 (mpl 2.0)", "mpl-2.0", "psf-2.0",
    "python software foundation license", "zlib", "dfsg approved", "isc license (iscl)",
}  # fmt: skip
"""Those that go with Apache-2.0 for what is only used, not copied."""
PROGRAMS = {"ansible", "ansible-core", "ansible-lint", "yamllint", "wireviz"}
"""Run as programs of their own, and not shipped with Tandem: the GPL, which they are under, asks nothing of it for that."""
GPL = {"gpl-3.0-or-later", "gnu general public license v3 or later (gplv3+)", "gnu general public license v3 (gplv3)"}

_PIN = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)==([^\s;\\]+)([^\\]*)")
_HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}\b")


@dataclass(frozen=True)
class Pin:
    """One entry of a list. ``marker``: for which systems; empty: for all."""

    name: str
    version: str
    marker: str
    hashes: int


def canonical(name: str) -> str:
    """As package indexes compare names."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(text: str) -> list[Pin]:
    """The entries of a list; ValueError names a line that is none."""
    found = []
    joined = re.sub(r"\\\n", " ", text)
    for line in joined.splitlines():
        plain = line.partition(" #")[0].strip()
        if not plain or plain.startswith("#"):
            continue
        match = _PIN.match(plain)
        if match is None:
            raise ValueError(f"no pinned package: {plain[:80]}")
        hashes = _HASH.findall(plain)
        found.append(Pin(canonical(match[1]), match[2], match[3].partition("--hash")[0].strip(" ;"), len(hashes)))
    return found


def faults_of_lists() -> list[str]:
    """What is wrong with the files themselves."""
    faults = []
    for name in (*LISTS, *APART):
        try:
            entries = pins((HERE / name).read_text())
        except ValueError as error:
            faults.append(f"{name}: {error}")
            continue
        faults += [f"{name}: {pin.name} has no hash" for pin in entries if not pin.hashes]
        for pin in entries:
            same = [other for other in entries if other.name == pin.name]
            if len(same) > 1 and not all(other.marker for other in same):
                faults.append(f"{name}: {pin.name} is there twice")
    for manifest in crates():
        dependencies = re.search(r"(?ms)^\[dependencies\]\n(.*?)(?=^\[|\Z)", manifest.read_text())
        for line in dependencies[1].splitlines() if dependencies else ():
            exact = re.fullmatch(r"[\w-]+ = (?:\"=[0-9.]+\"|\{ ?(?:path|version = \"=[0-9.]+\").*\})", line)
            if line.strip() and not line.startswith("#") and not exact:
                faults.append(f"{manifest.relative_to(HERE.parent)}: not an exact version: {line}")
    return faults


def crates() -> list[Path]:
    """The manifests of all of Tandem's own crates."""
    found = []
    for folder, below, files in os.walk(HERE.parent):
        # Not looked into: whole systems come and go in build/.
        below[:] = [name for name in below if name not in ("target", "build", ".venv", ".git")]
        if "Cargo.toml" in files:
            found.append(Path(folder, "Cargo.toml"))
    return sorted(found)


def faults_of_installed() -> list[str]:
    """Where this environment is not what the lists say."""
    listed: dict[str, set[str]] = {}
    for name in LISTS:
        for pin in pins((HERE / name).read_text()):
            listed.setdefault(pin.name, set()).add(pin.version)
    faults = []
    for found in metadata.distributions():
        name = canonical(found.metadata["Name"])
        if name in OURS | TOOLS:
            continue
        if name not in listed:
            faults.append(
                f"{name} {found.version} is installed and in no list; hint: requirements/*.in, or pip uninstall {name}"
            )
        elif found.version not in listed[name]:
            faults.append(
                f"{name} {found.version} is installed, the lists say {' or '.join(sorted(listed[name]))}; hint: ./kit setup"
            )
        known = LICENCES | GPL if name in PROGRAMS else LICENCES
        unknown = [one for one in licences(found.metadata) if one.lower() not in known]
        if unknown or not licences(found.metadata):
            faults.append(f"{name} {found.version}: licence {', '.join(unknown) or 'untold'} is not among the known")
    return sorted(faults)


def licences(told: metadata.PackageMetadata) -> list[str]:
    """What a package says of its licence, one name each."""
    if "License-Expression" in told:
        return [part for part in re.split(r" (?:AND|OR|WITH) |[()]", told["License-Expression"]) if part.strip()]
    classifiers = [
        str(c).rpartition(" :: ")[2] for c in told.get_all("Classifier") or () if str(c).startswith("License")
    ]
    return classifiers or ([told["License"]] if told.get("License") else [])


def known_holes() -> tuple[list[str], list[str]]:
    """What tools that ask for advisories say: faults, and what could not be asked."""
    faults: list[str] = []
    unasked = [
        f"{program} is not installed: nothing is known here about holes in those packages"
        for program in ("pip-audit", "cargo-audit")
        if shutil.which(program) is None
    ]
    if shutil.which("pip-audit"):
        command = ["pip-audit", "--require-hashes", "--disable-pip", "--format=json", "-r", str(HERE / "dev.txt")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        found, missed = advisories(done.stdout)
        faults += found
        unasked += missed
    if shutil.which("cargo-audit"):
        for crate in crates():
            done = subprocess.run(["cargo", "audit"], cwd=crate.parent, capture_output=True, text=True, check=False)
            if done.returncode:
                where = crate.parent.relative_to(HERE.parent)
                faults.append(f"cargo-audit in {where}: {(done.stdout + done.stderr).strip()}")
    return faults, unasked


def advisories(told: str) -> tuple[list[str], list[str]]:
    """Faults, and what was not looked up, in pip-audit's JSON. A package that its service does not know counts as good there; not here."""
    try:
        rows = json.loads(told)["dependencies"]
    except (ValueError, KeyError, TypeError):
        return [], ["pip-audit gave no answer: nothing is known here about holes in Python's packages"]
    faults = [f"{row['name']} {row['version']}: {hole['id']}" for row in rows for hole in row.get("vulns", ())]
    return faults, [f"{row['name']}: {row['skip_reason']}" for row in rows if "skip_reason" in row]


def main() -> int:
    """0: nothing found; 1: something."""
    holes, unasked = known_holes()
    faults = faults_of_lists() + faults_of_installed() + holes
    _print(faults)
    entries = len(pins((HERE / "dev.txt").read_text()))
    print(f"{entries} pinned entries, hashes, versions, licences: {'see above' if faults else 'nothing found'}")
    _print(f"not checked: {one}" for one in unasked)
    return 1 if faults else 0


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        print(line)


if __name__ == "__main__":
    sys.exit(main())
