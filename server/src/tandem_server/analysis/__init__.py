"""What a campaign's records say: scores against the truth, runs against capacity, the papers' "
"tables. Pure functions. ``load``: for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tandem_server.analysis.notebook import Campaign
    from tandem_server.analysis.records import Source


def load(folder: str | Path | Sequence[str | Path], source: Source | None = None, probe: str | None = None) -> Campaign:
    """A campaign folder, or several as one, as tables (``notebook.Campaign``). ``source``: of its records where they are not in the folder
    or its own database. Of an export all kits, or the one that ``probe`` names; of another folder with several its first. Needs pandas;
    FolderError where it is no campaign's folder. What did not arrive is in ``missing``."""
    from tandem_server.analysis import notebook

    folders = [folder] if isinstance(folder, str | Path) else folder
    return notebook.load([Path(one) for one in folders], source, probe)
