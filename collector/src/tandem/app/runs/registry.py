"""Which experiments there are: those of the package, and a person's own from the folder that the configuration names.

What an experiment is, it says itself (``--describe``), in a process of its own: code of a person's folder is never loaded here.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tandem.experiment
from tandem.experiment.parameters import Parameter

DESCRIBE_S = 15.0
"""A Pi Zero starts a process of the package in two seconds."""

_NAME = re.compile(r"[a-z][a-z0-9_]{0,40}\Z")


_Stamp = tuple[tuple[str, int, int], ...]


class RegistryError(ValueError):
    """There is no such experiment, or it cannot say what it is; one line with the hint."""


@dataclass(frozen=True, slots=True)
class Described:
    """What an experiment says of itself. ``raw``: as it said it; ``folder``: of a person's own, None for the package's; ``quiet``: see
    ``tandem.experiment.base.Experiment``."""

    name: str
    version: int
    parameters: tuple[Parameter, ...]
    results: tuple[Parameter, ...]
    phases: tuple[tuple[str, str], ...]
    raw: dict[str, Any]
    folder: Path | None = None
    quiet: bool = False

    def has(self, parameter: str) -> bool:
        return any(p.name == parameter for p in self.parameters)


def experiment_command(name: str) -> Sequence[str]:
    """Start the package's experiment ``name`` with this very interpreter."""
    return [sys.executable, "-m", "tandem.experiment", name]


class Registry:
    """``folder``: a person's own experiments, one folder each. ``command``: how one of the package is started."""

    def __init__(self, folder: Path | None, command: Callable[[str], Sequence[str]] = experiment_command) -> None:
        self._folder, self._command = folder, command
        self._known: dict[str, tuple[_Stamp | None, Described]] = {}
        self._failed: dict[str, RegistryError] = {}
        self._asking: set[str] = set()
        self._lock = threading.Lock()

    def names(self) -> list[str]:
        """All, in order. RegistryError when two have one name or the folder cannot be read."""
        return sorted({*tandem.experiment.names(), *self._own()})

    def _own(self) -> dict[str, Path]:
        if self._folder is None:
            return {}
        try:
            found = {f.name: f for f in sorted(self._folder.iterdir()) if (f / "__main__.py").is_file()}
        except OSError as error:
            reason = error.strerror or error
            raise RegistryError(f"{self._folder}: {reason}; hint: [experiments] folder names a folder") from error
        for name, folder in found.items():
            if not _NAME.match(name):
                raise RegistryError(f"{folder}: {name!r} is no name; hint: small letters, digits and _, 41 at most")
            if name in tandem.experiment.names():
                raise RegistryError(f"{folder}: an experiment of Tandem has this name; hint: rename the folder")
        return found

    def command(self, name: str) -> Sequence[str]:
        """How its process is started; RegistryError when there is none."""
        own = self._own()
        if name in own:
            return [sys.executable, str(own[name])]
        if name not in tandem.experiment.names():
            raise RegistryError(f"unknown experiment {name!r}; known: {', '.join(self.names())}")
        return self._command(name)

    def ready(self, name: str) -> bool:
        """Whether ``describe`` answers at once. If not, it is asked meanwhile, by a thread. RegistryError when there is none."""
        self.command(name)
        with self._lock:
            if name in self._failed or self._remembered(name) is not None:
                return True
            if name not in self._asking:
                self._asking.add(name)
                threading.Thread(target=self._ask, args=(name,), name=f"describe {name}", daemon=True).start()
            return False

    def _ask(self, name: str) -> None:
        try:
            self.describe(name)
        except RegistryError as error:
            self._failed[name] = error
        finally:
            self._asking.discard(name)

    def _remembered(self, name: str) -> Described | None:
        stamp, described = self._known.get(name, (None, None))
        return described if stamp is not None and stamp == _stamp(self._own().get(name)) else None

    def describe(self, name: str) -> Described:
        """What it says of itself, asked once, and of a person's own again when a file of it changed. RegistryError when it cannot."""
        if (failed := self._failed.pop(name, None)) is not None:
            raise failed
        if (described := self._remembered(name)) is not None:
            return described
        command = [*self.command(name), "--describe"]
        folder = self._own().get(name)
        stamp = _stamp(folder)
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=DESCRIBE_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError) as error:
            raise RegistryError(f"experiment {name}: --describe failed: {error}") from error
        if done.returncode != 0:
            words = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
            raise RegistryError(f"experiment {name}: --describe ended with status {done.returncode}: {words[:300]}")
        found = parse(name, done.stdout, folder)
        self._known[name] = stamp, found
        return found


def _stamp(folder: Path | None) -> _Stamp | None:
    """What changes with a person's own experiment, None while it is not known; of the package's nothing does while this program runs."""
    try:
        files = [] if folder is None else sorted(folder.rglob("*.py"))
        return tuple((str(file), (found := file.stat()).st_mtime_ns, found.st_size) for file in files)
    except OSError:
        return None  # a file is being exchanged


def parse(name: str, text: str, folder: Path | None = None) -> Described:
    """From what ``--describe`` printed; RegistryError when that is no description of ``name``."""
    try:
        raw = json.loads(text)
        described = Described(
            name=str(raw["name"]),
            version=int(raw["version"]),
            parameters=tuple(_parameter(p) for p in raw["parameters"]),
            results=tuple(_parameter(p) for p in raw.get("results", [])),
            phases=tuple((str(p["name"]), str(p["purpose"])) for p in raw.get("phases", [])),
            raw=raw,
            folder=folder,
            quiet=raw.get("quiet") is True,
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise RegistryError(f"experiment {name}: --describe says no description: {error!r}") from error
    if described.name != name:
        raise RegistryError(f"experiment {name}: it calls itself {described.name!r}; hint: name it as its folder")
    return described


def _parameter(raw: dict[str, Any]) -> Parameter:
    """As ``Parameter.describe`` wrote it."""
    values: dict[str, Any] = {k: tuple(v) if k in ("choices", "keys") else v for k, v in raw.items()}
    return Parameter(**values)
