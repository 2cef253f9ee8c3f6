#!/usr/bin/python
"""Builds one of this repository's distributions into a wheel, on the machine that Ansible runs on."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: tandem_wheel
short_description: Build a distribution of this repository into a wheel
description:
  - >-
    Builds a folder with a pyproject.toml into a wheel, without an index (pip wheel --no-build-isolation --no-index). The wheel's version,
    which its package also says of itself, is the given release; or the one in pyproject.toml with a word for the sources' content, so
    that what is the same is built once and installed once.
  - Runs where the wheel shall be, with delegate_to localhost. Also built in check mode, which changes nothing but the build folder.
options:
  source:
    description: The distribution's folder.
    type: path
    required: true
  into:
    description: Where wheels are kept.
    type: path
    required: true
  release:
    description: The version to give it (PEP 440). Empty for the sources' own.
    type: str
    default: ""
author: The Tandem authors
"""

EXAMPLES = r"""
- name: The collector's wheel is built
  tandem_wheel:
    source: "{{ playbook_dir }}/../../collector"
    into: "{{ playbook_dir }}/../../build/wheels"
  delegate_to: localhost
  register: collector_built
"""

RETURN = r"""
wheel: {description: Path of the wheel, type: str, returned: success}
release: {description: Its version, type: str, returned: success}
"""

RELEASE = re.compile(r"[0-9]+(\.[0-9]+)*((a|b|rc)[0-9]+)?(\.post[0-9]+)?(\.dev[0-9]+)?(\+[a-z0-9]+(\.[a-z0-9]+)*)?\Z")
"""A version as PEP 440 writes it in its normal form, without an epoch."""

LEAST_SETUPTOOLS = 77
"""The first that takes a licence as pyproject.toml has it."""

NOT_SOURCES = {"__pycache__", "build", ".mypy_cache", ".ruff_cache", ".pytest_cache"}


class BuildError(Exception):
    """One line for a person."""


def sources(folder: Path) -> list[Path]:
    """What the wheel is made of, in a fixed order: pyproject.toml and all below src."""
    found = [
        path
        for path in (folder / "src").rglob("*")
        if path.is_file()
        and path.suffix != ".pyc"
        and not any(part in NOT_SOURCES or part.endswith(".egg-info") for part in path.relative_to(folder).parts)
    ]
    return [folder / "pyproject.toml", *sorted(found)]


def digest(folder: Path) -> str:
    """A word for the content of the sources."""
    told = hashlib.sha256()
    for path in sources(folder):
        name, content = str(path.relative_to(folder)).encode(), path.read_bytes()
        told.update(b"%d %d\n" % (len(name), len(content)) + name + content)
    return told.hexdigest()[:12]


def project(folder: Path) -> tuple[str, str]:
    """Name and version in pyproject.toml."""
    try:
        text = (folder / "pyproject.toml").read_text()
    except OSError as error:
        raise BuildError(f"{folder}/pyproject.toml: {error.strerror}; mend: name a distribution's folder") from error
    table = text.partition("\n[project]\n")[2].partition("\n[")[0]
    found = [re.search(rf'^{key} = "([^"]+)"$', table, re.MULTILINE) for key in ("name", "version")]
    if found[0] is None or found[1] is None:
        raise BuildError(f"{folder}/pyproject.toml: [project] has no name or no version")
    return found[0][1], found[1][1]


def stamp(folder: Path, version: str, release: str) -> None:
    """The copied sources say that they are the release."""
    pyproject = folder / "pyproject.toml"
    pyproject.write_text(pyproject.read_text().replace(f'\nversion = "{version}"\n', f'\nversion = "{release}"\n', 1))
    for package in (folder / "src").glob("*/__init__.py"):
        text = package.read_text()
        package.write_text(text.replace(f'\n__version__ = "{version}"\n', f'\n__version__ = "{release}"\n', 1))


def build(folder: Path, into: Path, release: str) -> tuple[Path, str, bool]:
    """The wheel, its version, and whether it was built now; BuildError."""
    name, version = project(folder)
    content = digest(folder)
    release = release or f"{version}+{content}"
    if not RELEASE.match(release):
        raise BuildError(f"release {release!r}: no version as PEP 440 writes it; mend: as in 1.2.0 or 1.2.0+field2")
    into.mkdir(parents=True, exist_ok=True)
    wheel = into / f"{name.replace('-', '_')}-{release}-py3-none-any.whl"
    made_of = wheel.with_name(f"{wheel.name}.sources")
    with (into / ".lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if wheel.exists() and made_of.exists() and made_of.read_text() == content:
            return wheel, release, False
        with tempfile.TemporaryDirectory(dir=into) as scratch:
            made = _make(folder, Path(scratch), version, release)
            made_of.unlink(missing_ok=True)
            made.replace(wheel)
            made_of.write_text(content)
    return wheel, release, True


def _make(folder: Path, scratch: Path, version: str, release: str) -> Path:
    copied = scratch / "source"
    for path in sources(folder):
        target = copied / path.relative_to(folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    stamp(copied, version, release)
    needed = "mend: run this by ./kit provision, or install requirements/provision.txt"
    try:
        setuptools = metadata.version("setuptools")
    except metadata.PackageNotFoundError as error:
        raise BuildError(f"{sys.executable} has no setuptools; {needed}") from error
    if int(setuptools.partition(".")[0]) < LEAST_SETUPTOOLS:
        raise BuildError(f"setuptools {setuptools} of {sys.executable} is older than {LEAST_SETUPTOOLS}; {needed}")
    argv = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    # The time that zip files begin with: the same sources give the same bytes.
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "315532800", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    done = subprocess.run(
        [*argv, "--wheel-dir", str(scratch), str(copied)],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        env=environment,
    )
    made = list(scratch.glob("*.whl"))
    if done.returncode != 0 or len(made) != 1:
        said = [
            line.strip()
            for line in (done.stderr or done.stdout).splitlines()
            if "Error: " in line or line.startswith("ERROR")
        ]
        raise BuildError(f"{folder}: no wheel could be built: {'; '.join(said) or 'pip does not say why'}")
    return made[0]


def main() -> None:
    """As Ansible calls it."""
    arguments = {
        "source": {"type": "path", "required": True},
        "into": {"type": "path", "required": True},
        "release": {"type": "str", "default": ""},
    }
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    try:
        wheel, release, changed = build(
            Path(module.params["source"]), Path(module.params["into"]), module.params["release"]
        )
    except BuildError as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=changed, wheel=str(wheel), release=release)


if __name__ == "__main__":
    main()
