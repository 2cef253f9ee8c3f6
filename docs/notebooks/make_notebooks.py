"""Notebooks from scripts: each ``*.py`` beside this one with cells (``# %%``, ``# %% [markdown]``) becomes the ``.ipynb`` of its name.

``python docs/notebooks/make_notebooks.py`` writes them, without outputs (nbformat 4.5).
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
_CELL = re.compile(r"(?m)^# %%(?P<kind> \[markdown\])?\n")


def notebook(script: str) -> str:
    """The notebook's JSON; what stands before the first cell is left out."""
    parts = _CELL.split(script)[1:]
    cells = [
        _cell(n, bool(kind), text.strip("\n"))
        for n, (kind, text) in enumerate(zip(parts[::2], parts[1::2], strict=True))
    ]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    told = {
        "cells": cells,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return f"{json.dumps(told, indent=1, ensure_ascii=False)}\n"


def _cell(number: int, words: bool, text: str) -> dict[str, Any]:
    source = re.sub(r"(?m)^# ?", "", text) if words else text
    made: dict[str, Any] = {"cell_type": "markdown" if words else "code", "id": f"cell-{number}", "metadata": {}}
    if not words:
        made |= {"execution_count": None, "outputs": []}
    return {**made, "source": source.splitlines(keepends=True)}


def scripts() -> list[Path]:
    """Those that have cells."""
    return [path for path in sorted(HERE.glob("*.py")) if path.name != Path(__file__).name]


def main() -> None:
    """Write all."""
    for path in scripts():
        path.with_suffix(".ipynb").write_text(notebook(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
