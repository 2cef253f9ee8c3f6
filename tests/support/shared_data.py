"""Recordings of the field, which are no part of the repository: where they lie, if they do."""

import os
from pathlib import Path

LACKING = (
    "no recordings of the field beside the checkout (TANDEM_SHARED names the folder that holds data/drives and data/at)"
)
"""Why a test is skipped."""


def shared_data(name: str) -> Path | None:
    """``data/NAME`` in the folder that ``TANDEM_SHARED`` names, else in one called shared beside the checkout or above."""
    named = os.environ.get("TANDEM_SHARED")
    places = [Path(named)] if named else [folder / "shared" for folder in Path(__file__).resolve().parents]
    return next((place / "data" / name for place in places if (place / "data" / name).exists()), None)
