"""Pins what ``[dependency-groups]`` of pyproject.toml names, with hashes: ``python requirements/lock.py [--upgrade]``, with ``uv`` in PATH.

All groups are one resolution, ``lock.txt``, in which no package has two versions; above each entry stands in which groups it is. The group
``validators`` is resolved by itself, into ``validators.txt``.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
GROUPS = tomllib.loads((HERE.parent / "pyproject.toml").read_text())["dependency-groups"]
APART = "validators"
COMPILE = "uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --quiet"


def within(group: str) -> set[str]:
    """The group, and those that it includes."""
    included = [entry["include-group"] for entry in GROUPS[group] if isinstance(entry, dict)]
    return {group}.union(*map(within, included))


def entries(text: str) -> dict[str, str]:
    """Of a list as uv writes it: name → its lines (a package that has a version a Python has several). Comments alone are left out."""
    found: dict[str, str] = {}
    for block in re.split(r"(?m)^(?=[A-Za-z0-9])", re.sub(r"(?m)^#.*\n", "", text)):
        name = re.match(r"[A-Za-z0-9._-]+", block)
        if name:
            found[name[0]] = found.get(name[0], "") + block.rstrip("\n") + "\n"
    return found


def required_by(block: str) -> set[str]:
    """What an entry says that it is there for: other packages, and ``-r GROUP.in``."""
    return {first or second for first, second in re.findall(r"(?m)^ +# via *(.*)$|^ +#   (\S.*)$", block)}


def members(group: str, found: dict[str, str]) -> set[str]:
    """The packages of a group: those that it and the groups in it name, and all that these need."""
    wanted, inside = {f"-r {one}.in" for one in within(group)}, set[str]()
    while more := {name for name, block in found.items() if (wanted | inside) & required_by(block)} - inside:
        inside |= more
    return inside


def compiled(groups: list[str], pinned: str, options: list[str]) -> dict[str, str]:
    """What uv makes of what these groups name; versions stay as ``pinned`` has them."""
    with tempfile.TemporaryDirectory() as folder:
        for one in groups:
            Path(folder, f"{one}.in").write_text("\n".join(entry for entry in GROUPS[one] if isinstance(entry, str)))
        Path(folder, "list.txt").write_text(pinned)
        command = [*COMPILE.split(), *options, *(f"{one}.in" for one in groups), "-o", "list.txt"]
        subprocess.run(command, cwd=folder, check=True)
        return entries(Path(folder, "list.txt").read_text())


def written(found: dict[str, str], groups: list[str]) -> str:
    """The list: each entry below the groups that it is in."""
    inside = {one: members(one, found) for one in groups}
    return "".join(f"# in: {' '.join(g for g in groups if name in inside[g])}\n{found[name]}" for name in sorted(found))


def main(options: list[str]) -> None:
    for file, groups in (("lock.txt", [one for one in GROUPS if one != APART]), (f"{APART}.txt", [APART])):
        found = compiled(groups, (HERE / file).read_text() if (HERE / file).exists() else "", options)
        (HERE / file).write_text(written(found, groups))
        print(f"{file}: {len(found)} packages")


if __name__ == "__main__":
    main(sys.argv[1:])
