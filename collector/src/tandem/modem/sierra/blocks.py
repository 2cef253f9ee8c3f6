"""The two text blocks of Sierra's modems, taken apart."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tandem.modem.scalars import decimal, hexadecimal

_NUMBER = r"[ \t]*([-+]?[0-9]{1,6}(?:\.[0-9]{0,4})?)(?![0-9.])"
_IDENTITY = r"[ \t]*(?:0[xX])?([0-9A-Fa-f]{1,9})(?![0-9A-Fa-f])"


class Status:
    """!GSTATUS?: labels, each with its value behind a colon, two to a line, padded with spaces or tabs."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._all = "\n".join(line for line in lines if ":" in line)

    def _find(self, label: str, value: str) -> re.Match[str] | None:
        # "RSRP (dBm):" is not the end of "NR5G RSRP (dBm):", nor "TAC:" of "NR5G TAC:".
        prefixed = "" if label.startswith("NR5G") else r"(?<!NR5G )(?<!SCC )"
        return re.search(rf"(?<![A-Za-z0-9]){prefixed}{re.escape(label)}[ \t]*:{value}", self._all, re.IGNORECASE)

    def number(self, *labels: str) -> float | None:
        """The number behind the first of the labels that has one; of a label that stands twice, the first."""
        found = (self._find(label, _NUMBER) for label in labels)
        return next((decimal(match.group(1)) for match in found if match), None)

    def word(self, label: str) -> str | None:
        """The one word behind the label."""
        match = self._find(label, r"[ \t]*([^ \t\n:]{1,32})")
        return match.group(1) if match else None

    def text(self, label: str) -> str:
        """What stands behind the label until the line ends or the next label begins; empty when there is no such label."""
        match = self._find(label, r"[ \t]*([^:\n]{0,80})")
        return match.group(1).strip() if match else ""

    def identity(self, label: str) -> int | None:
        """A hexadecimal number; its decimal in brackets behind is not needed."""
        match = self._find(label, _IDENTITY)
        return hexadecimal(match.group(1)) if match else None

    @property
    def no_service(self) -> bool:
        """Whether it says that there is no system: ``System mode: No service``, ``NO SRV``."""
        return re.match(r"NO ?S", self.text("System mode"), re.IGNORECASE) is not None


_LABEL = re.compile(r"[A-Za-z]{1,8}\Z")


def serving_row(lines: Sequence[str]) -> dict[str, str]:
    """The row under ``Serving:`` of !LTEINFO?, by its columns' names. Empty when there is none.

    The names stand behind ``Serving:`` and the values in the next line; where line ends were lost, behind the names.
    """
    for i, line in enumerate(lines):
        head, found, rest = line.partition("Serving:")
        if not found or head.strip() not in ("", "!LTEINFO:"):
            continue
        words = rest.split()
        names = []
        for word in words:
            if not _LABEL.match(word):
                break
            names.append(word)
        cells = words[len(names) :] or (lines[i + 1].split() if i + 1 < len(lines) else [])
        return dict(zip(names, cells, strict=False)) if cells and ":" not in cells[0] else {}
    return {}
