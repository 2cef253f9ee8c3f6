"""What a campaign's records say: scores against the truth, runs against capacity, the papers' "
"tables. Pure functions. ``load``: for notebooks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tandem_server.analysis.notebook import Campaign
    from tandem_server.analysis.source import Source


def load(folder: str | Path, source: Source | None = None, probe: str | None = None) -> Campaign:
    """A campaign folder as tables (``notebook.Campaign``). ``source``: of its records where they are not in the folder or its own database;
    ``probe``: of a folder with several. Needs pandas; FolderError
    where it is no campaign's folder. What did not arrive is in ``missing``."""
    from tandem_server.analysis import notebook

    return notebook.load(Path(folder), source, probe)
