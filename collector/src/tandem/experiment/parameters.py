"""Parameters of an experiment: declared once with type, unit and range, checked before anything is measured."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

Kind = Literal["int", "float", "str", "bool", "object", "list"]


class ParameterError(ValueError):
    """A parameter is missing, unknown or out of range; the message is one line that names it and the mend."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter. Range inclusive, in ``unit``; ``default`` None with ``required`` False: may be left out."""

    name: str
    kind: Kind
    purpose: str
    unit: str = ""
    required: bool = False
    default: Any = None
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str | int, ...] = ()
    """Texts, or whole numbers."""
    keys: tuple[str, ...] = ()
    """Keys that an object (or each object of a list) must have, as text; others are left alone."""
    file: bool = False
    """Names a file or folder of this machine: campaigns that the server pushed may name those of the probe's folder only."""

    def describe(self) -> dict[str, Any]:
        """For ``--describe``: what is not the default."""
        shown = {f.name: (getattr(self, f.name), f.default) for f in fields(self)}
        return {name: v for name, (v, default) in shown.items() if type(v) is not type(default) or v != default}


def check(parameters: Sequence[Parameter], given: Mapping[str, Any]) -> dict[str, Any]:
    """``given`` with defaults filled in; ParameterError names the first thing wrong."""
    known = {p.name: p for p in parameters}
    for name in given:
        if name not in known:
            raise ParameterError(f"unknown parameter {name!r}; known: {', '.join(known)}")
    checked = {}
    for parameter in parameters:
        value = given.get(parameter.name)
        if value is None:
            if parameter.required:
                raise ParameterError(f"parameter {parameter.name!r} is missing: {parameter.purpose}")
            value = parameter.default
        else:
            value = _checked(parameter, value)
        checked[parameter.name] = value
    return checked


def _checked(parameter: Parameter, value: Any) -> Any:  # noqa: ANN401  any JSON value
    name, kind = parameter.name, parameter.kind
    if kind in ("int", "float"):
        return _number(parameter, value)
    expected: type[Any] = {"str": str, "bool": bool, "object": dict, "list": list}[kind]
    if not isinstance(value, expected):
        raise ParameterError(f"parameter {name!r}: {value!r} is not {_WORDS[kind]}")
    _chosen(parameter, value)
    if kind == "object":
        _keys(parameter, value, name)
    if kind == "list":
        for index, item in enumerate(value):
            if not isinstance(item, dict):
                raise ParameterError(f"parameter {name!r}: entry {index} is not an object")
            _keys(parameter, item, f"{name}[{index}]")
    return value


def _chosen(parameter: Parameter, value: Any) -> None:  # noqa: ANN401  any JSON value
    if parameter.choices and value not in parameter.choices:
        known = ", ".join(map(str, parameter.choices))
        raise ParameterError(f"parameter {parameter.name!r}: {value!r} is not one of {known}")


_WORDS = {"str": "text", "bool": "true or false", "object": "an object", "list": "a list"}


def _keys(parameter: Parameter, value: Mapping[str, Any], where: str) -> None:
    for key in parameter.keys:
        if not isinstance(value.get(key), str) or not value[key]:
            raise ParameterError(f"parameter {where!r}: {key!r} is missing or not text")


def _number(parameter: Parameter, value: Any) -> int | float:  # noqa: ANN401  any JSON value
    allowed = (int,) if parameter.kind == "int" else (int, float)
    word = "a whole number" if parameter.kind == "int" else "a number"
    where, unit = f"parameter {parameter.name!r}", f" {parameter.unit}" if parameter.unit else ""
    if isinstance(value, bool) or not isinstance(value, allowed) or not math.isfinite(value):
        raise ParameterError(f"{where}: {value!r} is not {word}")
    if parameter.minimum is not None and value < parameter.minimum:
        raise ParameterError(f"{where}: {value}{unit} is below {parameter.minimum:g}{unit}")
    if parameter.maximum is not None and value > parameter.maximum:
        raise ParameterError(f"{where}: {value}{unit} is above {parameter.maximum:g}{unit}")
    _chosen(parameter, value)
    return float(value) if parameter.kind == "float" else int(value)
