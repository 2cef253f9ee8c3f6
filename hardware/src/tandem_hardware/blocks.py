"""Blocks of a Markdown file that are made from a source: between ``<!-- generated: NAME -->`` and ``<!-- end -->``. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from tandem_hardware.errors import SourceError

_BLOCK = re.compile(r"(<!-- generated: (?P<name>[a-z0-9-]+) -->\n)(?P<body>.*?)(<!-- end -->)", re.DOTALL)


def with_blocks(path: Path, text: str, made: Mapping[str, Callable[[], str]]) -> str:
    """``text`` with each block's body made anew. SourceError: a block that nobody makes, or one of ``made`` that has no place."""
    placed: set[str] = set()

    def fill(found: re.Match[str]) -> str:
        name = found["name"]
        if name not in made:
            line = text.count("\n", 0, found.start()) + 1
            raise SourceError(f"{path.name}:{line}: nothing makes a block {name!r}; mend: one of {', '.join(made)}")
        placed.add(name)
        return f"{found[1]}{made[name]().rstrip()}\n{found[4]}"

    filled = _BLOCK.sub(fill, text)
    if missing := sorted(set(made) - placed):
        raise SourceError(
            f"{path.name}: no place for {missing[0]!r}; mend: <!-- generated: {missing[0]} --> and <!-- end -->"
        )
    return filled
