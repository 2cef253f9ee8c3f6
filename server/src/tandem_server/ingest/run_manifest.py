"""Is it a run's manifest? The keys and types of ``tandem.schema.manifest``, checked before the ledger takes it."""

from __future__ import annotations

import json
import math
import re
from types import UnionType
from typing import Any, Literal, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

from tandem.schema.manifest import FORMAT, Manifest, RunKind
from tandem_server.http.body import Unreadable, read_json

RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")


def _kinds(hint: Any) -> tuple[type, ...]:  # noqa: ANN401  any type that the schema has
    """What JSON has for it, as Python's classes."""
    origin = get_origin(hint)
    if origin in (Union, UnionType, NotRequired):
        return tuple(dict.fromkeys(kind for one in get_args(hint) for kind in _kinds(one)))
    if origin is Literal:
        return (str,)
    return (dict,) if is_typeddict(hint) else (origin or hint,)


_HINTS = get_type_hints(Manifest, include_extras=True)
_KINDS = {key: _kinds(hint) for key, hint in _HINTS.items()}
_OPTIONAL = {key for key, hint in _HINTS.items() if get_origin(hint) is NotRequired}
_RESULT: dict[str, tuple[type, ...]] = {"bytes": (int,), "duration_s": (int, float), "goodput_bit_per_s": (int, float)}


class InvalidManifest(Unreadable):
    """The body is no manifest of this run."""


def read_manifest(text: str, run: str, probe: str) -> dict[str, Any]:
    """The manifest in ``text``, which must be of this run and of this probe; InvalidManifest names the first fault."""
    manifest = read_json(text, InvalidManifest, parse_float=_finite)
    if not isinstance(manifest, dict):
        raise InvalidManifest("no JSON object")
    if manifest.get("format") != FORMAT:
        raise InvalidManifest(f"format is {manifest.get('format')!r}, expected {FORMAT!r}")
    for key, kinds in _KINDS.items():
        if key in manifest:
            _check_kind(key, manifest[key], kinds)
        elif key not in _OPTIONAL:
            raise InvalidManifest(f"no {key!r}")
    if manifest["id"] != run:
        raise InvalidManifest(f"id is {manifest['id']!r}, the address says {run!r}")
    if manifest["probe"] != probe:
        raise InvalidManifest(f"probe is {manifest['probe']!r}, the token is {probe!r}'s")
    if manifest["kind"] not in get_args(RunKind) or manifest["pairing"] not in ("sequential", "simultaneous", "single"):
        raise InvalidManifest("kind or pairing is none of the schema's")
    if not all(isinstance(path, str) for path in manifest["paths"]):
        raise InvalidManifest("paths are not texts")
    if not all(type(count) is int and count >= 0 for count in manifest["records"].values()):
        raise InvalidManifest("records are not counts")
    if manifest["result"] is not None and manifest["kind"] != "any":  # whose result is the experiment's own
        for key, kinds in _RESULT.items():
            _check_kind(f"result.{key}", manifest["result"].get(key), kinds)
    if manifest["failure"] is not None:
        _check_kind("failure.reason", manifest["failure"].get("reason"), (str,))
        _check_kind("failure.retry", manifest["failure"].get("retry"), (bool,))
    if manifest["result"] is None and manifest["failure"] is None:
        raise InvalidManifest("neither result nor failure")
    return manifest


def _check_kind(key: str, value: object, kinds: tuple[type, ...]) -> None:
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        raise InvalidManifest(f"{key} is {json.dumps(value)[:60]}, expected {' or '.join(k.__name__ for k in kinds)}")


def _finite(number: str) -> float:
    """1e999 would be kept as Infinity, at which SQLite's JSON functions fail, for all runs at once."""
    if not math.isfinite(value := float(number)):
        raise ValueError(f"{number[:20]} is beyond any number kept here")
    return value
