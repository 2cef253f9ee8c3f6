"""Pins what the ``.in`` files name, with hashes, each package once: ``python requirements/lock.py [--upgrade]``, with ``uv`` in PATH.

All groups are resolved together, so that no package has two versions. ``runtime.txt`` holds what the programs need; each other group's
list names the lists under it by ``-r`` and holds only what it adds. ``validators.txt`` is resolved by itself.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
UNDER: dict[str, tuple[str, ...]] = {
    "runtime": (),
    "notebook": ("runtime",),
    "hardware": ("runtime",),
    "provision": ("runtime",),
    "dev": ("notebook", "hardware", "provision"),
}
"""Which lists each list begins with; the last one holds all."""
APART = ("validators",)
COMPILE = (
    "uv",
    "pip",
    "compile",
    "--universal",
    "--python-version",
    "3.11",
    "--generate-hashes",
    "--no-emit-index-url",
)
COMPILE += ("--no-emit-find-links", "--no-header", "--quiet")


def entries(text: str) -> dict[str, str]:
    """Of a list as uv writes it: name → its lines (a package that has a version a Python has several). Comments alone are left out."""
    found: dict[str, str] = {}
    for block in re.split(r"(?m)^(?=[A-Za-z0-9])", text):
        name = re.match(r"[A-Za-z0-9._-]+", block)
        if name:
            found[name[0]] = found.get(name[0], "") + block.rstrip("\n") + "\n"
    return found


def required_by(block: str) -> list[str]:
    """What an entry says that it is there for: other packages, and ``requirements/GROUP.in``."""
    via = re.findall(r"(?m)^ +# via *(.*)$|^ +#   (\S.*)$", block)
    return [(first or second).removeprefix("-r ") for first, second in via if first or second]


def members(group: str, found: dict[str, str]) -> set[str]:
    """The packages of a group: those that its file and the files under it name, and all that these need."""
    files = {f"requirements/{name}.in" for name in (group, *UNDER[group])}
    if group == "dev":
        return set(found)
    inside: set[str] = set()
    while True:
        more = {name for name, block in found.items() if (files | inside) & set(required_by(block))} - inside
        if not more:
            return inside
        inside |= more


def compiled(source: str, pinned: str, options: list[str]) -> str:
    """What uv makes of a file; versions stay as ``pinned`` has them."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "list.txt")
        out.write_text(pinned)
        subprocess.run([*COMPILE, *options, f"requirements/{source}.in", "-o", str(out)], cwd=HERE.parent, check=True)
        return out.read_text()


def main(options: list[str]) -> None:
    lists = {name: HERE / f"{name}.txt" for name in (*UNDER, *APART)}
    pinned: dict[str, str] = {}
    for name in UNDER:
        if lists[name].exists():
            pinned |= entries(lists[name].read_text())
    found = entries(compiled("dev", "".join(pinned.values()), options))
    written: dict[str, set[str]] = {}
    for name, under in UNDER.items():
        held = set().union(*(written[one] for one in under))
        adds = members(name, found) - held
        written[name] = held | adds
        begin = "".join(f"-r {one}.txt\n" for one in under)
        lists[name].write_text(begin + "".join(found[one] for one in sorted(adds)))
        print(f"{lists[name].name}: {len(written[name])} packages, {len(adds)} of them here")
    for name in APART:
        lists[name].write_text(compiled(name, lists[name].read_text() if lists[name].exists() else "", options))


if __name__ == "__main__":
    main(sys.argv[1:])
