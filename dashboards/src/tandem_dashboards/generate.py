"""Files that are generated and committed, never edited: ``generated/*.json`` of the boards, ``provisioning/alerting/`` of the alarms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tandem_dashboards.alarms import provisioning
from tandem_dashboards.boards import BOARDS, load

_CHECKOUT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Generated:
    """``texts()``: file name → text. ``folder``: in a checkout; an installed package has none, and is given one."""

    what: str
    folder: Path
    pattern: str
    texts: Callable[[], dict[str, str]]

    def drift(self, folder: Path | None = None) -> list[str]:
        """Names of files in ``folder`` that differ from ``texts()``, are missing, or are of none."""
        folder, wanted = folder or self.folder, self.texts()
        there = {path.name: path.read_text(encoding="utf-8") for path in folder.glob(self.pattern)}
        return sorted(name for name in {*wanted, *there} if wanted.get(name) != there.get(name))

    def write(self, folder: Path | None = None) -> list[str]:
        """Write every file, take away those that are of none; the names of files that changed."""
        folder, wanted = folder or self.folder, self.texts()
        folder.mkdir(parents=True, exist_ok=True)
        changed = self.drift(folder)
        for name in changed:
            if name in wanted:
                (folder / name).write_text(wanted[name], encoding="utf-8")
            else:
                (folder / name).unlink()
        return changed


def _boards() -> dict[str, str]:
    return {f"{name}.json": load(name).to_text() for name in BOARDS}


boards = Generated("boards", _CHECKOUT / "generated", "*.json", _boards)
alarms = Generated("alarms", _CHECKOUT / "provisioning" / "alerting", "*.y*ml", provisioning.texts)
