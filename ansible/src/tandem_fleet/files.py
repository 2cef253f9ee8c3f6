"""A fleet's files: read as YAML with Ansible's ``!vault`` values, written in one step."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml


class FleetError(Exception):
    """What cannot be done: a place (file, variable or option), what is wrong with it, what helps. One line."""

    def __init__(self, place: object, what: str, hint: str) -> None:
        super().__init__(f"{place}: {what}; hint: {hint}")
        self.place, self.what, self.hint = str(place), what, hint


@dataclass(frozen=True)
class Sealed:
    """An encrypted value, as it stands in the file."""

    text: str


class _Loader(yaml.SafeLoader):
    """Knows encrypted values, and refuses a key that stands twice, of which YAML would keep the second."""


def _sealed(loader: _Loader, node: yaml.Node) -> Sealed:
    return Sealed(str(loader.construct_scalar(node)))  # type: ignore[arg-type]  # a mapping raises


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[Any, Any]:
    seen: set[str] = set()
    for key, _ in node.value:
        if isinstance(key, yaml.ScalarNode):
            if key.value in seen:
                raise yaml.MarkedYAMLError(problem=f"{key.value} stands twice", problem_mark=key.start_mark)
            seen.add(key.value)
    return dict(loader.construct_mapping(node, deep=True))


_Loader.add_constructor("!vault", _sealed)
_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)


def load(file: Path) -> dict[str, Any]:
    """The variables in ``file``; empty for an empty file. FleetError: not there, not YAML, or no dictionary."""
    try:
        return parse(file, file.read_text())
    except FileNotFoundError:
        raise FleetError(file, "no such file", "./kit fleet new DIR makes a fleet") from None
    except UnicodeDecodeError:
        raise FleetError(file, "is no text", "UTF-8") from None


def parse(file: Path, text: str) -> dict[str, Any]:
    """As ``load``, of the ``text`` that ``file`` has or would have."""
    try:
        found = yaml.load(text, _Loader)  # noqa: S506 - a SafeLoader
    except yaml.YAMLError as error:
        mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
        place = f"{file}:{mark.line + 1}" if mark else str(file)
        raise FleetError(place, problem or "not YAML", "two spaces a level, `name: value`, each name once") from None
    if not isinstance(found or {}, dict):
        raise FleetError(file, "holds no variables", "each line as `name: value`")
    return found or {}


def replace(file: Path, text: str, mode: int = 0o644) -> None:
    """Write ``file`` in one step: a power cut leaves the old or the new one."""
    made = file.with_name(f".{file.name}.tmp")
    made.unlink(missing_ok=True)
    with os.fdopen(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w") as out:
        out.write(text)
        out.flush()
        os.fsync(out.fileno())
    made.replace(file)
