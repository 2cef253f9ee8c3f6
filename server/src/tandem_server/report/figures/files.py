"""The figures as files: ``NAME.svg`` and ``NAME.csv``."""

from __future__ import annotations

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


def write_figures(folder: Path, drawn: Sequence[Drawn]) -> None:
    """Into ``folder``, which is made; OSError. What an earlier report drew and this one cannot is taken away."""
    folder.mkdir(parents=True, exist_ok=True)
    found = contents(drawn)
    for one in drawn:
        for kind in ("svg", "csv"):
            if f"{one.figure.name}.{kind}" not in found:
                (folder / f"{one.figure.name}.{kind}").unlink(missing_ok=True)
    for name, text in found.items():
        partial = folder / f"{name}.tmp"
        partial.write_text(text, encoding="utf-8")
        partial.replace(folder / name)
