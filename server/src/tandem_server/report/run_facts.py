"""A run's manifest in words. It was sent by a probe: nothing in it is trusted, every text goes through ``words.plain``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tandem_server.analysis.reading import mapping, number, text, whole
from tandem_server.analysis.tables.view import unit_of
from tandem_server.ledger.runs import RunRow
from tandem_server.report import words
from tandem_server.report.words import plain

_DEEPEST, _MOST, _LISTED = 5, 150, 20
_CC, _SCHEDULER, _PATH_MANAGER = "net.ipv4.tcp_congestion_control", "net.mptcp.scheduler", "net.mptcp.path_manager"
_APART = {"subflows", "subflow_losses"}
"""Of a result: lists that have a table of their own, or are in the manifest alone."""
_FIRST = ("goodput_bit_per_s", "bytes", "duration_s", "connect_ms", "first_byte_ms", "fallback")
_ENDINGS = ("_bit_per_s", "_ms", "_s")
WHY = {
    "not_sent": "still at the probe",
    "not_heard": "the probe has not told of itself since",
    "refused": "rejected or dropped, as the probe counts",
    "unexplained": "nobody knows why",
    "not_received": "not received yet",
    "on_the_way": "on its way",
    "other_hash": "received with another content",
    "no_manifest": "the manifest may still come",
    "cut_off": "the run was cut off",
}

Pairs = list[tuple[str, str]]


def headline(manifest: Mapping[str, Any]) -> Pairs:
    """What it was, in short; what is not told is left out."""
    environment, campaign = mapping(manifest, "environment"), mapping(manifest, "campaign")
    its, versions = mapping(environment, "experiment"), mapping(environment, "versions")
    sysctls = {**mapping(environment, "sysctls"), **mapping(its, "sysctls")}
    experiment, paths = mapping(manifest, "experiment"), manifest.get("paths")
    named = [one for one in paths if isinstance(one, str)] if isinstance(paths, list) else []
    number_of, step = whole(campaign, "number"), text(campaign, "step")
    of_step = ", ".join(
        p for p in (f"step {step}" if step else "", f"run {number_of}" if number_of is not None else "") if p
    )
    found: list[tuple[str, Any]] = [
        ("Experiment", " ".join(shown(experiment.get(key), key) for key in ("name", "version") if experiment.get(key))),
        (
            "Kind",
            {"mptcp": "Multipath TCP", "tcp": "TCP", "any": "the experiment’s own"}.get(str(manifest.get("kind"))),
        ),
        ("Paths, the primary first", ", ".join(named[:_LISTED])),
        ("Pair", " ".join(t for t in (text(manifest, "pair"), text(manifest, "pairing")) if t)),
        ("Begun by", text(manifest, "trigger")),
        ("Campaign", ", ".join(t for t in (text(campaign, "name"), of_step, text(campaign, "label")) if t)),
        ("Seed", manifest.get("seed")),
        ("Software", text(versions, "tandem")),
        ("Kernel", text(versions, "kernel") or text(its, "kernel")),
        ("Scheduler", text(its, "scheduler") or text(sysctls, _SCHEDULER)),
        ("Path manager", text(its, "path_manager") or text(sysctls, _PATH_MANAGER)),
        ("Congestion control of the probe", text(sysctls, _CC)),
        ("Boot", text(manifest, "boot")),
    ]
    return [(name, shown(value)) for name, value in found if value not in (None, "")]


def figures(manifest: Mapping[str, Any]) -> Pairs:
    """The result's own numbers and words, with units; its lists are tables."""
    result = {key: value for key, value in mapping(manifest, "result").items() if key not in _APART}
    units = {k: v for k, v in mapping(mapping(manifest, "experiment"), "units").items() if isinstance(v, str)}
    ordered = {key: result[key] for key in [*(k for k in _FIRST if k in result), *result] if result[key] is not None}
    return [(_title(name), value) for name, value in flat(ordered, units) if value != words.ABSENT]


def _title(name: str) -> str:
    """A result's key as words: its unit stands behind the figure."""
    ending = next((end for end in _ENDINGS if name.endswith(end)), "")
    return name.removesuffix(ending).replace("_", " ")


def flat(told: Mapping[str, Any], units: Mapping[str, str] | None = None) -> Pairs:
    """Names and values of an object and of those in it, at most ``_MOST``."""
    out: Pairs = []
    for name, key, value in _leaves(told, "", 0):
        if len(out) == _MOST:
            return [*out, ("…", "more is in the manifest")]
        out.append((plain(name, 120), shown(value, key, (units or {}).get(key))))
    return out


def _leaves(told: Mapping[str, Any], before: str, depth: int) -> Iterator[tuple[str, str, Any]]:
    for key, value in told.items():
        name = f"{before}{key}"
        if isinstance(value, dict) and depth < _DEEPEST:
            yield from _leaves(value, f"{name} · ", depth + 1)
        else:
            yield name, str(key), value


def shown(value: Any, name: str = "", declared: str | None = None) -> str:  # noqa: ANN401  any JSON value
    """A value in words; ``name`` ends in its unit, where it has one and none is ``declared``."""
    if value is None:
        return words.ABSENT
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, list):
        listed = [shown(one, name, declared) for one in value[:_LISTED] if not isinstance(one, list | dict)]
        if value and not listed:
            return f"{len(value)} entries, in the manifest"
        more = len(value) - len(listed)
        return ", ".join([*listed, *([f"{more} more in the manifest"] if more else [])]) or "none"
    if isinstance(value, dict):
        return f"{len(value)} values, in the manifest"
    if name.endswith("_utc_ns"):
        return words.moment(whole({"t": value}, "t"))
    measured = number({"v": value}, "v")
    return "no number that there is" if measured is None else with_unit(measured, unit_of(name, declared))


def with_unit(value: float, unit: str) -> str:
    """A number and its unit, both as people read them."""
    if unit == "bit/s":
        return f"{words.mega(value)} Mbit/s"
    if unit == "B":
        return words.size(value)
    if unit == "share":
        return words.percent(value, 1)
    written = str(int(value)) if value.is_integer() else f"{value:.4g}" if abs(value) < 1000 else f"{value:.1f}"
    return written if unit in ("", "1") else f"{written} {plain(unit, 20)}"


def subflows(manifest: Mapping[str, Any]) -> list[list[str]]:
    """Rows: path, operator, bytes, share, median RTT, delay of the join."""
    rows = mapping(manifest, "result").get("subflows")
    keys = ("path", "operator", "bytes", "share", "rtt_ms_median", "join_delay_ms")
    units = {"share": "share", "rtt_ms_median": "ms"}
    listed = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    return [[shown(row.get(key), key, units.get(key)) for key in keys] for row in listed[:64]]


def verdict(row: RunRow | None) -> tuple[str, str, list[str]]:
    """The ledger's word: tone (``good``, ``bad`` or none), a line, and what is missing."""
    if row is None:
        return "", "What arrived is not known.", []
    promised, arrived, files, received = row.counts
    counts = f"{words.count(arrived)} of {words.count(promised)} records and {received} of {files} files are here."
    lacks = [
        f"{plain(lack.name)}: {words.count(lack.count)} of its records missing, {WHY[lack.why]} ({plain(lack.detail)})"
        if lack.what == "records"
        else f"{plain(lack.name)}: {WHY[lack.why]} ({plain(lack.detail)})"
        for lack in row.missing[:40]
    ]
    said = {
        "complete": ("good", f"Complete. {counts}"),
        "expired": ("", "It began before what the database keeps: its records are no longer asked for."),
        "under_way": ("", "It is under way."),
        "waiting": ("", f"Not all of it is here yet. {counts}"),
        "missing": ("bad", f"Something is missing. {counts}"),
    }
    return *said[row.state], lacks
