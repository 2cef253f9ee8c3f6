"""The one error that bad scenario files and bad logs raise."""

from __future__ import annotations

from pathlib import Path


class ScenarioError(ValueError):
    """One line for people: file, line, what is wrong, and the mend."""

    def __init__(self, where: str | Path, line: int | None, what: str, mend: str) -> None:
        place = f"{where}" if line is None else f"{where}:{line}"
        super().__init__(" ".join(f"{place}: {what}; {mend}".split()))
