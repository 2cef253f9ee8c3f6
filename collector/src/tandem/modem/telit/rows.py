"""Telit's two forms: a row of columns whose number varies, and labels with their values."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tandem.at.grammar import values


class Row:
    """The columns of an RFSTS line. ``caret``: of ^RFSTS."""

    def __init__(self, text: str, caret: bool = False) -> None:
        self.caret = caret
        self.values = values(text) if text.strip() else ()
        quoted = [i for i, raw in enumerate(_raw(text)) if raw.strip().startswith('"')]
        behind = [i for i in quoted if i > 0]
        self.imsi_column = behind[0] if behind else None
        """Where the quoted IMSI stands; the cell is before it. The only other quoted columns are the network's number, which is
        the first, and its name, which is behind. None when nothing is quoted."""

    def at(self, index: int) -> str:
        """The value of a column, unquoted; empty when there is none."""
        return self.values[index] if 0 <= index < len(self.values) else ""


def _raw(text: str) -> list[str]:
    """The columns with their quotes. No quoted one holds a comma but the last, a name."""
    return text.split(",")


_LABEL = re.compile(
    r"(?<![0-9A-Za-z_])([A-Za-z][A-Za-z_]{1,9}): *([-+]?[0-9A-Fa-f.]{1,12}(?:dBm?)?)(?![0-9A-Za-z])", re.IGNORECASE
)


def labelled(line: str) -> Mapping[str, str]:
    """``RSRP:-101`` … of a #MONI line, the labels in capitals. Empty for the heading of the table form."""
    return {match.group(1).upper(): match.group(2) for match in _LABEL.finditer(line.partition(":")[2])}
