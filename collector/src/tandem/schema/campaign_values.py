"""Values of a step's parameters, arms and links: what is one value, what is several, what is drawn. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from tandem.schema.campaign import Arms, Draw
from tandem.schema.campaign_keys import CONTRADICTING, SHAPE
from tandem.schema.campaign_source import Source
from tandem.schema.toml_lines import Place

_LAWS = ("uniform", "log_uniform")
_VALUE = "a number, text in quotes, true or false, a table, or a list of these (one arm for each)"
_NO_SYN = (
    "simultaneous SYN existed only as a patch to a kernel of 2013; no kernel that can be had sends the second subflow's SYN "
    "before the first has answered"
)


def arms_of(source: Source, value: object, place: Place) -> Arms:
    """The values that a parameter takes; a list is one for each element."""
    name = str(place[-1])
    if name in ("simultaneous_syn", "sim_syn"):
        raise source.fail(place, _NO_SYN, f"take {name!r} out")
    if not isinstance(value, list):
        return (_one(source, value, place),)
    if not value:
        raise source.fail(place, f"{name}: an empty list has no arm", f"give {_VALUE}")
    values = tuple(_one(source, v, place) for v in value)
    for index, one in enumerate(values):
        if any(one == other and type(one) is type(other) for other in values[:index]):
            raise source.fail(
                place, f"{name}: {one!r} occurs twice", "name each value once; say 'repetitions' for more"
            )
    return values


def explicit_arms(source: Source, value: object, place: Place) -> tuple[Mapping[str, Any], ...]:
    """``arms = [{…}, {…}]``: parameters that go together."""
    mend = 'as in arms = [{ kind = "mptcp" }, { kind = "tcp", path = "wifi" }]'
    if not isinstance(value, list) or not all(isinstance(arm, dict) for arm in value):
        raise source.fail(place, "arms: no list of tables", mend)
    found = []
    for arm in value:
        for name, one in arm.items():
            if name in ("simultaneous_syn", "sim_syn"):
                raise source.fail(place, _NO_SYN, f"take {name!r} out")
            if isinstance(one, list):
                raise source.fail(
                    place, f"arms: {name} has several values", "one value each; lists go into 'parameters'"
                )
        found.append({name: _one(source, one, place) for name, one in arm.items()})
    return tuple(found)


def numbers_of(source: Source, value: object, place: Place) -> dict[str, Arms]:
    """A link's quantities, each with its arms."""
    table = source.table(value, place)
    known = {key.name: key for key in SHAPE}
    where = ".".join(str(p) for p in place if isinstance(p, str))
    source.only(table, known, place, f"[{where}]")
    agreeing(source, table, place)
    found: dict[str, Arms] = {}
    for name, given in table.items():
        values = given if isinstance(given, list) else [given]
        if not values:
            raise source.fail((*place, name), f"{name}: an empty list has no arm", known[name].mend)
        for one in values:
            if (wrong := known[name].wrong(one)) is not None:
                raise source.fail((*place, name), f"{name}: {wrong}", known[name].mend)
        if len({float(v) for v in values}) != len(values):
            raise source.fail((*place, name), f"{name}: a value occurs twice", "name each value once")
        found[name] = tuple(float(v) for v in values)
    return found


def agreeing(source: Source, table: Mapping[str, Any], place: Place) -> None:
    """Refuse a shape that says one thing twice."""
    for both, single in CONTRADICTING:
        for name in single:
            if both in table and name in table:
                raise source.fail(
                    (*place, name), f"{name} and {both} are both given", f"{both} is for both ways; keep one of them"
                )


def _one(source: Source, value: object, place: Place) -> Any:  # noqa: ANN401 any JSON value, or a Draw
    if isinstance(value, dict) and len(value) == 1 and next(iter(value)) in _LAWS:
        return _draw(source, *next(iter(value.items())), place)
    if not _json(value):
        raise source.fail(place, f"{place[-1]}: {value!r} is no value of a parameter", f"give {_VALUE}")
    return value


def _json(value: object) -> bool:
    if isinstance(value, dict):
        return all(_json(v) for v in value.values())
    if isinstance(value, list):
        return all(_json(v) for v in value)
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, bool | int | str)


def _draw(source: Source, law: str, ends: object, place: Place) -> Draw:
    mend = f"as in {place[-1]} = {{ {law} = [100, 1000000] }}"
    numbers = isinstance(ends, list) and all(isinstance(e, int | float) and not isinstance(e, bool) for e in ends)
    if not numbers or not isinstance(ends, list) or len(ends) != 2 or not all(abs(e) <= 10**15 for e in ends):
        raise source.fail(place, f"{place[-1]}: {law} needs two numbers", mend)
    low, high = ends
    if not low < high or (law == "log_uniform" and low <= 0):
        raise source.fail(
            place,
            f"{place[-1]}: {law} from {low} to {high}",
            f"{mend}, the smaller first, both above 0 for log_uniform",
        )
    return Draw("uniform" if law == "uniform" else "log_uniform", low, high)
