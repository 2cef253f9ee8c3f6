"""What experiments are and what they found, as text. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tandem.experiment.parameters import Parameter


def described(name: str, version: int, parts: Mapping[str, Sequence[Any]]) -> str:
    """An experiment's description; ``parts``: ``parameters``, ``phases`` (name, purpose) and ``results``."""
    lines = [f"{name}, version {version}", "", "parameters"]
    lines += _table([_parameter(p) for p in parts["parameters"]])
    if parts["phases"]:
        lines += ["", "phases", *_table(list(parts["phases"]))]
    lines += ["", "result", *_table([(r.name, r.kind, r.unit, r.purpose) for r in parts["results"]])]
    return "\n".join(lines)


def _parameter(p: Parameter) -> tuple[str, str, str, str]:
    limits = ""
    if p.choices:
        limits = " or ".join(map(str, p.choices))
    elif p.minimum is not None or p.maximum is not None:
        low, high = (None if v is None else f"{v:g}" for v in (p.minimum, p.maximum))
        limits = " to ".join(v for v in (low, high) if v is not None) + (f" {p.unit}" if p.unit else "")
    note = "required" if p.required else "" if p.default is None else f"default {p.default}"
    return p.name, p.kind, ", ".join(w for w in (note, limits) if w), p.purpose


def result_lines(result: Mapping[str, Any] | None) -> list[str]:
    """A result's figures, one a line; long ones by their length."""
    rows = []
    for name, value in (result or {}).items():
        if isinstance(value, list):
            shown = f"{len(value)} entries"
        elif isinstance(value, dict):
            shown = ", ".join(f"{k} {_short(v)}" for k, v in list(value.items())[:8])
        else:
            shown = _short(value)
        rows.append((name, shown))
    return _table(rows) if rows else []


def _short(value: Any) -> str:  # noqa: ANN401 any JSON value
    if isinstance(value, dict):
        return "(" + ", ".join(f"{k} {_short(v)}" for k, v in list(value.items())[:4]) + ")"
    if isinstance(value, float):
        return f"{value:.6g}"
    return "–" if value is None else str(value)[:120]


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    if not rows:
        return ["  none"]
    widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]) - 1)]
    return ["  " + "  ".join([*(row[n].ljust(w) for n, w in enumerate(widths)), row[-1]]).rstrip() for row in rows]
