"""Writes ``generated/*.json`` from the boards, or says what differs."""

from __future__ import annotations

from pathlib import Path

from tandem_dashboards import registry

GENERATED = Path(__file__).resolve().parents[2] / "generated"
"""In a checkout. An installed package has no such folder, and is told one."""


def texts() -> dict[str, str]:
    """File name → text, of every board."""
    return {f"{name}.json": registry.load(name).to_text() for name in registry.names()}


def write(folder: Path = GENERATED) -> list[str]:
    """Write every board's file, take away those of boards that are gone; the names of files that changed."""
    folder.mkdir(parents=True, exist_ok=True)
    changed = drift(folder)
    wanted = texts()
    for name in changed:
        if name in wanted:
            (folder / name).write_text(wanted[name], encoding="utf-8")
        else:
            (folder / name).unlink()
    return changed


def drift(folder: Path = GENERATED) -> list[str]:
    """Names of files in ``folder`` that are not what the boards make, are missing, or are of no board."""
    wanted = texts()
    there = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.json")} if folder.is_dir() else {}
    return sorted(name for name in {*wanted, *there} if wanted.get(name) != there.get(name))
