"""Values out of JSON objects that may be cut, old or wrong: a wrong type reads as absent, never as an error."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

LARGEST = 1e18
"""Nothing that is measured here comes near it; sums and products of such numbers stay finite."""


def number(obj: Mapping[str, Any], key: str) -> float | None:
    """A number of at most LARGEST on either side of 0, or None."""
    value = obj.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        value = float(value)
    except OverflowError:  # an integer of more than 308 digits
        return None
    return value if abs(value) <= LARGEST else None


def whole(obj: Mapping[str, Any], key: str) -> int | None:
    """A whole number of at most 63 bits, or None."""
    value = obj.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, float) and not (math.isfinite(value) and value.is_integer()):
        return None
    return int(value) if abs(value) < 2**63 else None


def text(obj: Mapping[str, Any], key: str) -> str | None:
    """A text that is not empty, or None."""
    value = obj.get(key)
    return value if isinstance(value, str) and value else None


def flag(obj: Mapping[str, Any], key: str) -> bool | None:
    """True or false, or None."""
    value = obj.get(key)
    return value if isinstance(value, bool) else None


def mapping(obj: Mapping[str, Any], key: str) -> dict[str, Any]:
    """An object, or an empty one."""
    value = obj.get(key)
    return value if isinstance(value, dict) else {}


def mappings(obj: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    """The objects of a list; anything else in it is left out."""
    value = obj.get(key)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def json_object(path: Path) -> dict[str, Any]:
    """The object in a JSON file. ValueError with one line when the file is cut or holds something else; OSError as it comes."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        where = f" (line {error.lineno})" if isinstance(error, json.JSONDecodeError) else ""
        raise ValueError(f"{path.name} is cut or no JSON{where}") from error
    if not isinstance(value, dict):
        raise ValueError(f"{path.name} holds no JSON object")
    return value
