"""Reads a campaign's file, for the probe and for the server that pushes it."""

from __future__ import annotations

from pathlib import Path

from tandem.schema.campaign import CampaignError

LONGEST_TEXT = 1_000_000
"""Bytes of a campaign's file."""


def text_of(file: str) -> str:
    """Its text; CampaignError, one line with the file and the hint."""
    try:
        with Path(file).open("rb") as opened:
            content = opened.read(LONGEST_TEXT + 1)
    except OSError as error:
        raise CampaignError(f"{file}: {error.strerror}; hint: name a campaign or its file") from error
    if len(content) > LONGEST_TEXT:
        raise CampaignError(f"{file}: longer than {LONGEST_TEXT} bytes; hint: fewer steps")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CampaignError(f"{file}: is not UTF-8 text (byte {error.start}); hint: save it as UTF-8") from error
