"""Reads a campaign's file, for the probe and for the server that pushes it."""

from __future__ import annotations

from pathlib import Path

from tandem.schema.campaign import CampaignError

LONGEST_TEXT = 1_000_000
"""Bytes of a campaign's file."""


def text_of(file: str) -> str:
    """Its text; CampaignError, one line with the file and the mend."""
    try:
        with Path(file).open("rb") as opened:
            content = opened.read(LONGEST_TEXT + 1)
    except OSError as error:
        raise CampaignError(f"{file}: {error.strerror}; mend: name a campaign or its file") from error
    if len(content) > LONGEST_TEXT:
        raise CampaignError(f"{file}: longer than {LONGEST_TEXT} bytes; mend: fewer steps")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CampaignError(f"{file}: is not UTF-8 text (byte {error.start}); mend: save it as UTF-8") from error
