"""Keys of TOML files that people write (configuration, campaigns): type, range, default and the mend, once. Checks values only. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["text", "number", "whole", "truth"]
WORDS = {"text": "text in quotes", "number": "a number", "whole": "a whole number", "truth": "true or false"}


@dataclass(frozen=True, slots=True)
class Key:
    """One key. Range inclusive unless ``above`` is set (then the minimum itself is too small); ``check`` returns what is wrong
    with a value, None when nothing; ``default`` None and not ``required``: may be absent; ``private``: no message quotes the value."""

    name: str
    kind: Kind
    mend: str
    required: bool = False
    default: Any = None
    minimum: float | None = None
    maximum: float | None = None
    above: bool = False
    choices: tuple[str, ...] = ()
    check: Callable[[str], str | None] | None = None
    private: bool = False

    def wrong(self, value: object) -> str | None:
        """What is wrong with ``value``; None when nothing."""
        found = self._wrong(value)
        return "not a value that can be (it is private and not shown)" if found is not None and self.private else found

    def _wrong(self, value: object) -> str | None:
        if self.kind == "truth":
            return None if isinstance(value, bool) else f"{value!r} is not true or false"
        if self.kind == "text":
            return self._text_wrong(value)
        allowed = (int,) if self.kind == "whole" else (int, float)
        if isinstance(value, bool) or not isinstance(value, allowed) or value != value:
            return f"{value!r} is not {WORDS[self.kind]}"
        low = self.minimum
        if low is not None and (value < low or (self.above and value == low)):
            return f"{value} is {'not above' if self.above else 'below'} {low:g}"
        if self.maximum is not None and value > self.maximum:
            return f"{value} is above {self.maximum:g}"
        return None

    def _text_wrong(self, value: object) -> str | None:
        if not isinstance(value, str):
            return f"{value!r} is not text in quotes"
        if not value or not value.isprintable():
            return "the text is empty or has control characters"
        if self.choices and value not in self.choices:
            return f"{value!r} is none of {', '.join(self.choices)}"
        return self.check(value) if self.check is not None else None
