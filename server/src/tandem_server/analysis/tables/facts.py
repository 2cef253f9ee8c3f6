"""One run as the tables see it, from its manifest: where it belongs, what it was asked, what came of it. Wrong types read as absent."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tandem.schema.campaign import PAPER
from tandem_server.analysis.reading import mapping, mappings, number, text, whole

_LONGEST_FILE = 64 << 20
_NOT_AN_ARM = {"paths", "server", "seed", "run", "deadline_s", "order", "kind", "path"}
"""Each run's own, or columns of their own."""
_LONGEST_LABEL = 120
SENDER_SHARES = "sender_shares"
"""Of a run's result, where they are known: of a download by path, 0 to 1; of page loads such by session, of uploads by token. The server's
own addition to what the manifest says (``sender_shares``)."""

Side = Literal["sender", "receiver", "acknowledged"]
"""Whose shares of bytes by path are: what the sender sent, by its capture; what the receiver's sockets received; what the sender's had
acknowledged."""


@dataclass(frozen=True, slots=True)
class Facts:
    """``campaign``, ``step`` and ``arm`` are "" for a run that was of none; ``arm``: what is asked of it and not of the step's other arms,
    by parameter in ``varied``.
    ``usage``: bytes both ways over all paths, as the interfaces counted. ``own``: the probe's folder.

    Of a pool of several kits only: ``probe``, the kit; ``part``, what the tables are parted by and its value; ``operators``, by path the
    name under which it goes."""

    id: str
    campaign: str
    form: str
    step: str
    arm: str
    number: int | None
    pair: str
    pairing: str
    experiment: str
    kind: str
    path: str
    parameters: Mapping[str, Any]
    result: Mapping[str, Any]
    failure: str | None
    started_utc_ns: int | None
    duration_s: float | None
    usage: int | None
    substituted: Mapping[str, Any]
    units: Mapping[str, str]
    own: Path
    varied: Mapping[str, str]
    repetition: int | None
    arm_number: int | None
    probe: str = ""
    part: Mapping[str, str] = field(default_factory=dict)
    operators: Mapping[str, str] = field(default_factory=dict)

    def listed(self, key: str) -> list[dict[str, Any]]:
        """The objects of a list of the result, also where it lies in a file of the run; [] when it cannot be read."""
        value = self.result.get(key)
        if not isinstance(value, dict) or not isinstance(value.get("file"), str):
            return mappings(self.result, key)
        name = Path(value["file"])
        path = self.own / name
        try:
            if name.is_absolute() or ".." in name.parts or path.stat().st_size > _LONGEST_FILE:
                return []
            rows = [json.loads(line) for line in path.read_bytes().splitlines()]
        except (OSError, ValueError, RecursionError):
            return []
        return [row for row in rows if isinstance(row, dict)]


def gather(manifests: Sequence[Mapping[str, Any]], own: Path) -> list[Facts]:
    """In the manifests' order."""
    varied = _varied(manifests)
    return [_facts(m, varied[n], own) for n, m in enumerate(manifests)]


def _facts(m: Mapping[str, Any], varied: Mapping[str, str], own: Path) -> Facts:
    campaign, parameters, result = mapping(m, "campaign"), mapping(m, "parameters"), mapping(m, "result")
    paths = m.get("paths")
    named = [p for p in paths if isinstance(p, str)] if isinstance(paths, list) else []
    kind = text(m, "kind") or ""
    experiment = mapping(m, "experiment")
    name = text(experiment, "name") or ("download" if kind in ("mptcp", "tcp") else "unnamed")
    moved = [
        count
        for path in mapping(mapping(m, "usage"), "paths").values()
        if isinstance(path, dict)
        for count in (whole(path, "received"), whole(path, "sent"))
        if count is not None
    ]
    started, ended = whole(m, "started_monotonic_ns"), whole(m, "ended_monotonic_ns")
    return Facts(
        id=str(m.get("id")),
        campaign=text(campaign, "name") or "",
        form=str(campaign.get("form", PAPER)),
        step=text(campaign, "step") or "",
        arm=", ".join(f"{key} {value}" for key, value in varied.items())[:_LONGEST_LABEL],
        number=whole(campaign, "number"),
        pair=text(m, "pair") or "",
        pairing=text(m, "pairing") or "",
        experiment=name,
        kind=kind if kind != "any" else text(parameters, "kind") or "",
        path=text(parameters, "path") or (named[0] if kind == "tcp" and named else ""),
        parameters=parameters,
        result=result,
        failure=text(mapping(m, "failure"), "reason"),
        started_utc_ns=whole(m, "started_utc_ns"),
        duration_s=None if started is None or ended is None else (ended - started) / 1e9,
        usage=sum(moved) if moved else None,
        substituted=mapping(campaign, "substituted"),
        units={k: v for k, v in mapping(experiment, "units").items() if isinstance(v, str)},
        own=own,
        varied=varied,
        repetition=whole(campaign, "repetition"),
        arm_number=whole(campaign, "arm"),
    )


def _asked(m: Mapping[str, Any]) -> dict[str, str]:
    """What may tell an arm from another: parameters that are one value, and the shape of the links."""
    found = {
        key: _word(value)
        for key, value in mapping(m, "parameters").items()
        if key not in _NOT_AN_ARM and isinstance(value, str | int | float) and not isinstance(value, dict)
    }
    for key, told in mapping(mapping(m, "campaign"), "substituted").items():
        if key in found and isinstance(told, dict) and isinstance(asked := told.get("asked"), str):
            found[key] += f" for {asked[:60]}"  # two arms that use the same in place of different ones are two
    for path, shape in mapping(mapping(m, "conditions"), "shape").items():
        for key, value in (mapping(shape, "asked") if isinstance(shape, dict) else {}).items():
            if isinstance(value, str | int | float):
                found[f"{path}.{key}"] = _word(value)
    if (policy := text(mapping(m, "steering"), "policy")) is not None:
        found["steering"] = policy
    return dict(map(_in_mega, found.items()))


def _word(value: str | float) -> str:
    return f"{value:g}" if isinstance(value, float) and abs(value) < 1e15 else str(value)[:60]


def _in_mega(asked: tuple[str, str]) -> tuple[str, str]:
    """A rate as people say it."""
    key, value = asked
    if not key.endswith("_bit_per_s"):
        return asked
    try:
        return key.removesuffix("_bit_per_s"), f"{float(value) / 1e6:.6g} Mbit/s"
    except ValueError:
        return asked


def _varied(manifests: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Of each run's arm: keys that have one value in each arm of its step and not the same in all; none in a step of one arm."""
    steps: dict[tuple[str, str], dict[int, list[dict[str, str]]]] = {}
    places: list[tuple[tuple[str, str], int] | None] = []
    for m in manifests:
        campaign = mapping(m, "campaign")
        name, arm = text(campaign, "name"), whole(campaign, "arm")
        if name is None or arm is None:
            places.append(None)
            continue
        step = (name, text(campaign, "step") or "")
        places.append((step, arm))
        steps.setdefault(step, {}).setdefault(arm, []).append(_asked(m))
    told: dict[tuple[tuple[str, str], int], dict[str, str]] = {}
    for step, arms in steps.items():
        fixed = {arm: _fixed(runs) for arm, runs in arms.items()}
        keys = sorted({key for values in fixed.values() for key in values})
        apart = [k for k in keys if len({values.get(k) for values in fixed.values()}) > 1]
        for arm, values in fixed.items():
            told[step, arm] = {k: values[k] for k in apart if k in values}
    return [{} if place is None else told[place] for place in places]


def _fixed(runs: Sequence[dict[str, str]]) -> dict[str, str]:
    first, *rest = runs
    return {key: value for key, value in first.items() if all(other.get(key) == value for other in rest)}


def unasked_share(subflows: Sequence[Mapping[str, Any]]) -> float | None:
    """The part of all bytes that went over none of the run's paths: a subflow whose path it could not name. None without bytes."""
    counts = [(text(row, "path"), whole(row, "bytes") or 0) for row in subflows]
    every = sum(count for _, count in counts)
    return sum(count for path, count in counts if path is None) / every if every > 0 else None


def shares(result: Mapping[str, Any]) -> tuple[dict[str, float], Side]:
    """By path, 0 to 1: of what the sender sent, by the server's own capture, where that is known; else of what was received, subflows of a
    path together. {}: it is not known."""
    sent = mapping(dict(result), SENDER_SHARES)
    if known := {path: share for path in sent if (share := number(sent, path)) is not None}:
        return known, "sender"
    return summed(mappings(dict(result), "subflows"), "share"), "receiver"


def part(result: Mapping[str, Any], name: str | None) -> dict[str, float]:
    """Of one load or upload of a run; empty where they are not known."""
    found = mapping(mapping(dict(result), SENDER_SHARES), name or "")
    return {path: float(share) for path, share in found.items() if isinstance(share, int | float)}


def round_share(result: Mapping[str, Any], benefit: Mapping[str, Any]) -> tuple[float | None, Side]:
    """The most loaded path's share of the Multipath TCP step of a benefit, and who counted: of an upload the probe is the sender."""
    if sent := part(result, text(benefit, "token")):
        return max(sent.values()), "sender"
    side: Side = "acknowledged" if text(result, "mode") == "oneway" else "receiver"
    return number(benefit, "most_loaded_share"), side


def load_shares(result: Mapping[str, Any], load: Mapping[str, Any]) -> tuple[dict[str, float], Side]:
    """By path, of one page load, and who counted; {}: it is not known."""
    if sent := part(result, text(load, "session")):
        return sent, "sender"
    told = mapping(load, "shares")
    return {path: share for path in told if (share := number(told, path)) is not None}, "receiver"


def summed(flows: Sequence[Mapping[str, Any]], key: str) -> dict[str, float]:
    """By path, over its subflows."""
    out: dict[str, float] = {}
    for row in flows:
        path, value = text(row, "path"), number(row, key)
        if path is not None and value is not None:
            out[path] = out.get(path, 0.0) + value
    return out


def numbers(row: Mapping[str, Any], *keys: str) -> dict[str, float | None]:
    """Some of a row's numbers, by name."""
    return {key: number(row, key) for key in keys}
