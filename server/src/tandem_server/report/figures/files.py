"""The figures as files: ``NAME.svg`` and ``NAME.csv``, and ``figures.json``: which are drawn, and what the others lack."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from tandem_server.report.figures.section import Drawn


def contents(drawn: Sequence[Drawn]) -> dict[str, str]:
    """By name of file; none of a figure that lacks something."""
    return {
        f"{one.figure.name}.{kind}": text
        for one in drawn
        if one.svg
        for kind, text in (("svg", f"{one.svg}\n"), ("csv", one.csv))
    }


def index(drawn: Sequence[Drawn]) -> str:
    """Of every figure of the papers: ``name``, ``paper``, ``label``, ``title``, ``drawn``, ``lacks`` ("" of a drawn one); of a pool
    ``probes``."""
    rows = [
        {
            **{key: getattr(one.figure, key) for key in ("name", "paper", "label", "title")},
            "drawn": bool(one.svg),
            "lacks": one.lacks,
            **({"probes": list(one.probes)} if one.probes else {}),
        }
        for one in drawn
    ]
    return json.dumps(rows, indent=1, ensure_ascii=False) + "\n"


def write_figures(folder: Path, drawn: Sequence[Drawn]) -> None:
    """Into ``folder``, which is made; OSError. What an earlier report drew and this one cannot is taken away."""
    folder.mkdir(parents=True, exist_ok=True)
    found = contents(drawn)
    for one in drawn:
        for kind in ("svg", "csv"):
            if f"{one.figure.name}.{kind}" not in found:
                (folder / f"{one.figure.name}.{kind}").unlink(missing_ok=True)
    for name, text in {**found, "figures.json": index(drawn)}.items():
        partial = folder / f"{name}.tmp"
        partial.write_text(text, encoding="utf-8")
        partial.replace(folder / name)
