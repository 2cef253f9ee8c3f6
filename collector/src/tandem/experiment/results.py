"""What an experiment's result holds: declared once, as its parameters are, and compared with what it really told. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tandem.experiment.parameters import Kind, Parameter

BYTES_BY_PATH = Parameter(
    "bytes_by_path", "object", "by path: received and sent, as far as the kernel told; null: unknown", "B"
)
"""Every experiment declares it: what the run cost each path, beside the interface's own counters in the manifest."""

FIGURES = (
    Parameter("bytes", "int", "payload", "B"),
    Parameter("duration_s", "float", "of the transfer", "s"),
    Parameter("goodput_bit_per_s", "float", "bytes · 8 / duration", "bit/s"),
)  # fmt: skip
"""The figures that can be compared with every experiment's; one that has them uses these names."""

SENDER = Parameter("sender", "object", "the server's answer when the session was closed")
"""For experiments of one session."""

_TYPES: dict[Kind, tuple[type[Any], ...]] = {
    "int": (int,),
    "float": (int, float),
    "str": (str,),
    "bool": (bool,),
    "object": (dict,),
    "list": (list, tuple),
}


def faults(declared: Sequence[Parameter], result: Mapping[str, Any]) -> list[str]:
    """What ``result`` has that was not declared, or of another kind, one line each; None is a value of every kind. A declared key
    that is not there is no fault: it could not be measured."""
    known = {p.name: p for p in declared}
    found = []
    for name, value in result.items():
        parameter = known.get(name)
        if parameter is None:
            found.append(f"{name!r} is not declared")
        elif value is not None and not _is(parameter.kind, value):
            found.append(f"{name!r}: {type(value).__name__}, declared as {parameter.kind}")
    return found


def _is(kind: Kind, value: object) -> bool:
    return isinstance(value, _TYPES[kind]) and (kind == "bool" or not isinstance(value, bool))


def bytes_by_path(counted: Iterable[tuple[str | None, int | None, int | None]]) -> dict[str, dict[str, int | None]]:
    """Sums of (path, received, sent) over everything that was measured, by path; a subflow whose path is not known is left out,
    and what was told for none of a path's is None."""
    sums: dict[str, dict[str, int | None]] = {}
    for path, received, sent in counted:
        if path is None:
            continue
        row = sums.setdefault(path, {"received": None, "sent": None})
        for name, value in (("received", received), ("sent", sent)):
            if value is not None:
                row[name] = (row[name] or 0) + value
    return sums
