"""The good configuration of these tests, and what is said of one that is not good."""

import re
from collections.abc import Iterable
from pathlib import Path

from tandem.app.config import Config, ConfigError, parse

GOOD = (Path(__file__).parent / "good.toml").read_text()
FILE = Path("/etc/tandem/config.toml")


def good(more: str = "", file: Path = FILE) -> Config:
    return parse(f"{GOOD}\n{more}\n", file)


def wrongly_told(cases: Iterable[tuple[str, str, str]]) -> list[tuple[str, str]]:
    """Of texts, what stands in their bad line, and words of the message: those that are not refused in one line that names file, line
    and mend."""
    wrong = []
    for text, where, words in cases:
        message = "taken"
        try:
            parse(text, FILE)
        except ConfigError as error:
            message = str(error)
        found = re.match(rf"{FILE}:(\d+): .+; hint", message)
        named = "" if found is None else text.splitlines()[int(found[1]) - 1]
        if "\n" in message or words not in message or where not in named or not named:
            wrong.append((words, message))
    return wrong
