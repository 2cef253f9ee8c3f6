"""Conditions of one run: network sysctls and shaped paths. Made before it, undone whatever happens, also after kill -9: the next start
undoes what an earlier life left."""

from __future__ import annotations

import dataclasses
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tandem import shaping
from tandem.app.config_schema import SYSCTL_NAME
from tandem.mptcp import sysctls
from tandem.schema.manifest import Conditions as ConditionsState
from tandem.shaping import Shape, ShapeError, shape_of
from tandem.spool.durable import write_durably

log = logging.getLogger(__name__)

FILE = "run-sysctls.json"
"""In the spool's folder while a run's sysctls are set: what they were before, and in which boot."""


class ConditionsError(RuntimeError):
    """They cannot be made on this machine; one line with what is missing. Nothing is left of them. ``retry``: they may be in a while."""

    def __init__(self, reason: str, *, retry: bool = False) -> None:
        super().__init__(reason)
        self.retry = retry


@dataclass(frozen=True, slots=True)
class Conditions:
    """``sysctl``: values by name; ``shape``: by path."""

    sysctl: Mapping[str, str | int] = field(default_factory=dict)
    shape: Mapping[str, Shape] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.sysctl or self.shape)


def conditions_of(sysctl: object, shape: object, paths: tuple[str, ...]) -> Conditions:
    """From a request's plain values (None: none); ValueError names the first thing wrong."""
    if not isinstance(sysctl, Mapping | None) or not isinstance(shape, Mapping | None):
        raise ValueError("sysctl and shape are objects: values by name, shapes by path")
    for name, value in (sysctl or {}).items():
        if not SYSCTL_NAME.match(name):
            raise ValueError(f"sysctl {name!r}: no name of net.*; only network settings are taken")
        if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).isprintable() or value == "":
            raise ValueError(f"sysctl {name}: {value!r} is neither text nor a whole number")
    shapes = {}
    for path, wanted in (shape or {}).items():
        if path not in paths:
            raise ValueError(f"shape: {path!r} is no path of the run; it has {', '.join(paths)}")
        if not isinstance(wanted, Mapping):
            raise ShapeError(f"shape.{path}: {wanted!r} is no object")
        shapes[path] = shape_of(wanted, f"shape.{path}")
    return Conditions(dict(sysctl or {}), shapes)


def missing_requirement(wanted: Conditions) -> str | None:
    """What they require and this machine has not, found beforehand without touching a path; None when nothing is known to be missing."""
    absent = [name for name, value in sysctls.read(wanted.sysctl).items() if value is None]
    if absent:
        return f"sysctl {absent[0]}: this kernel has none, or hides it"
    # One trial finds what all need: the shape that needs most.
    shapes = sorted(wanted.shape.values(), key=lambda s: (s.needs_netem, s.down.shaped))
    return shaping.missing(shapes[-1]) if shapes else None


class ConditionsMade:
    """What was made of them; ConditionsError with nothing left behind. ``spool``: the folder of ``FILE``; ``boot``: its id."""

    def __init__(self, wanted: Conditions, interfaces: Mapping[str, str | None], spool: Path, boot: str) -> None:
        self._wanted, self._file = wanted, spool / FILE
        self._shaping = shaping.Shaping()
        self._settings: dict[str, sysctls.Setting] = {}
        try:
            if wanted.sysctl:
                before = sysctls.read(wanted.sysctl)
                unknown = [name for name, value in before.items() if value is None]
                if unknown:
                    raise ConditionsError(f"sysctl {unknown[0]}: this kernel has none, or hides it")
                write_durably(self._file, json.dumps({"boot": boot, "before": before}).encode())
                self._settings = sysctls.apply(wanted.sysctl)
                for setting in self._settings.values():
                    if setting.error is not None:
                        raise ConditionsError(
                            f"sysctl {setting.name} cannot be set to {setting.asked}: {setting.error}"
                        )
            if wanted.shape:
                self._shaping.apply(wanted.shape, interfaces)
        except (ConditionsError, shaping.ShapingError, OSError) as error:
            self.undo()
            raise ConditionsError(str(error), retry=getattr(error, "retry", False)) from error
        except BaseException:
            self.undo()  # a fault of ours, or the collector's end: nothing is left behind either
            raise

    def state(self) -> ConditionsState:
        """For the manifest; ``at_end`` is as found now."""
        at_end = sysctls.read(self._settings)
        settings = {name: dataclasses.asdict(s) | {"at_end": at_end[name]} for name, s in self._settings.items()}
        return ConditionsState(sysctl=settings, shape=self._shaping.state())

    def undo(self) -> list[str]:
        """Put everything back; what could not be, one line each."""
        problems = self._shaping.remove()
        failed = [s for s in sysctls.restore(self._settings).values() if s.error is not None]
        problems += [f"sysctl {s.name} stays at {s.now}: {s.error}" for s in failed]
        if not failed:
            self._file.unlink(missing_ok=True)
        self._settings = {}
        for problem in problems:
            log.error("after a run: %s", problem)
        return problems


def undo_earlier(spool: Path, boot: str) -> list[str]:
    """Undo what an earlier life of the collector left: shaping in this network namespace, and sysctls of this boot. What was done, one
    line each."""
    done: list[str] = []
    try:
        done += [f"{name}: shaping taken down" for name in shaping.clean()]
    except shaping.ShapingError as error:
        log.warning("whether an earlier life left shaping is not known: %s", error)
    file = spool / FILE
    try:
        text = file.read_bytes()
    except FileNotFoundError:
        return done
    except OSError as error:
        log.error("what sysctls an earlier run changed is not known, they stay: %s: %s", file, error)
        return done  # the file stays too: the next start may read it
    try:
        left = json.loads(text)
        before = {str(k): str(v) for k, v in left["before"].items()} if left["boot"] == boot else {}
        settings = sysctls.apply(before)  # ValueError for a name that none of ours has
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        aside = file.with_name(f"{FILE}.broken")
        log.error(
            "%s is not as it was written (%s): kept as %s; what it changed stays until a boot", file, error, aside.name
        )
        file.replace(aside)
        return done
    failed = False
    for setting in settings.values():
        if setting.error is None:
            done.append(f"sysctl {setting.name} = {setting.now}")
        else:
            failed = True
            log.error("sysctl %s stays at %s: %s", setting.name, setting.now, setting.error)
    if not failed:
        file.unlink(missing_ok=True)
    return done
