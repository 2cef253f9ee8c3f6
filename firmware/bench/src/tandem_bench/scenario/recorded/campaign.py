"""A finished campaign's folder (docs/reference/campaign-folder.md) as a scenario.

What is read, in every folder, kept whole or not:
- ``campaign.json``: when it was and which paths there were; the first two with radio are the operators A and B;
- ``probe/*/runs/*.json``: what single-path runs got is the least that the network offered.
The radio of a bench's campaign is in the database, not in the folder. So it is read from the first of these that is there:
- ``probe/NAME/records/``: the records as Parquet, which every export has;
- ``truth.jsonl``: what the bench itself played, which a rehearsal always leaves and a campaign in the field never has.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tandem_bench.scenario.model import LONGEST_S, SHORTEST_S
from tandem_bench.scenario.played import Drive, Played, Repeat
from tandem_bench.scenario.recorded.exported import Span, drive, has_records, probe_of
from tandem_bench.scenario.recorded.exported import rows as exported
from tandem_bench.scenario.recorded.gnettrack import Row
from tandem_bench.scenario.recorded.replay import play_rows
from tandem_bench.scenario.toml_table import ScenarioError

TRUTH = "truth.jsonl"
RUN = "tandem-run/1"
RADIO = ("path", "state", "rat", "rsrp_dbm", "rsrq_db", "sinr_db", "rssi_dbm", "tac", "eci")
_SERVED = ("connected", "idle", "unknown")
"""States of a radio record in which the modem has service; ``no_answer`` and ``port_lost`` say nothing of the network."""
_UNHEARD = ("no_answer", "port_lost")


@dataclass(frozen=True, slots=True)
class Got:
    """What single-path runs got on a path over a span: seconds since the campaign's start, bit/s; ``rtt_ms`` of the handshake."""

    begin_s: float
    end_s: float
    bit_per_s: float
    rtt_ms: float | None


def from_run(
    folder: str | Path,
    duration_s: float | None = None,
    seed: int = 1,
    probe: str | None = None,
    at_ns: int | None = None,
) -> Played:
    """Play the campaign in ``folder`` again, cut to ``duration_s``. ``probe``: whose, of an export with several; ``at_ns``: of an export,
    the drive that goes on then (UTC) or begins next after it, else its longest. ScenarioError names what cannot be used; ``notes`` of the
    outcome what the folder does not tell."""
    folder = Path(folder)
    campaign = _json(folder / "campaign.json")
    start_ns, end_ns = campaign.get("started_utc_ns"), campaign.get("ended_utc_ns")
    if campaign.get("format") != "tandem-campaign/1" or type(start_ns) is not int:
        raise ScenarioError(folder / "campaign.json", 1, "no tandem-campaign/1", "give a campaign's folder")
    name, paths = probe_of(folder / "campaign.json", campaign, probe)
    notes: list[str] = []
    if isinstance(campaign.get("export"), dict):
        if type(end_ns) is not int:
            raise ScenarioError(folder / "campaign.json", 1, "the export was broken off", "hint: export it again")
        span, note = drive(folder, name, Span(start_ns, end_ns), at_ns)
        start_ns, whole_s = span.begin_ns, span.seconds
        notes.append(note)
    else:
        told_s = campaign.get("duration_s")
        whole_s = (end_ns - start_ns) / 1e9 if type(end_ns) is int else math.inf
        if isinstance(told_s, int | float) and not isinstance(told_s, bool) and told_s > 0:
            whole_s = min(whole_s, float(told_s))
    radio, note = _radio(folder, start_ns, whole_s, paths, name)
    notes.append(note)
    names = [path for path in paths if radio.get(path)][:2]
    if len(names) < 2:
        found = ", ".join(names) or "none"
        raise ScenarioError(
            folder, None, f"radio of two paths is needed, found: {found}", "give a campaign with two modems"
        )
    whole_s = min([whole_s, *(radio[path][-1].t_s + 1.0 for path in names)])
    if whole_s < SHORTEST_S:
        raise ScenarioError(folder, None, f"only {whole_s:.0f} s of radio", f"give {SHORTEST_S:g} s or more")
    every = [_json(file) for file in sorted((folder / "probe").glob(f"{name or '*'}/runs/*.json"))]
    manifests = [told for told in every if told.get("format", RUN) == RUN]
    if len(manifests) < len(every):
        notes.append(f"runs of another format than {RUN}, which are left out: {len(every) - len(manifests)}")
    if unset := sum(type(told.get("started_utc_ns")) is not int for told in manifests):
        notes.append(f"runs that tell no time, since the clock was not set, which are left out: {unset}")
    got = runs(manifests, start_ns)
    logs = {}
    for operator, path in zip("AB", names, strict=True):
        spans = got.get(path, [])
        logs[operator] = _with_rates(radio[path], spans)
        covered_s = _covered(spans, whole_s)
        network = paths[path].get("operator") if isinstance(paths[path], dict) else None
        notes.append(
            f"{operator} is path {path} ({network or 'no name'}): its capacity is known, as the least that single-path runs show, "
            f"for {covered_s:.0f} of {whole_s:.0f} s; "
            + ("between runs the last holds" if spans else "it is 1 Mbit/s throughout, since no such run was made")
        )
    notes.append("capacity within a run is its mean; uplinks were not measured: 5 Mbit/s; queues and loss are assumed")
    if all(row.speed_m_s is None for rows in logs.values() for row in rows):
        notes.append("there is no speed: all counts as standing")
    played = play_rows(
        "run", logs, whole_s, duration_s, seed, why="gap in the records, or no service", no_service_is_outage=True
    )
    asked, left_out = repeats(manifests, start_ns, played.duration_s, dict(zip(names, "ab", strict=True)))
    if left_out:
        notes.append(f"runs that are not repeated: {left_out}; those of download over the two paths are")
    of = Drive(folder, name, start_ns, dict(zip("AB", names, strict=True)), asked)
    return replace(played, notes=tuple(notes), drive=of)


# --- radio ---------------------------------------------------------------------------------------------------------------


def _radio(
    folder: Path, start_ns: int, whole_s: float, paths: dict[str, Any], probe: str
) -> tuple[dict[str, list[Row]], str]:
    """Rows by path, in order of time; what is to be said of them."""
    if has_records(folder, probe):
        rows = _from_files(folder, probe, start_ns, min(whole_s, LONGEST_S), paths)
        return rows, "radio as the modems told it, about once a second"
    if (folder / TRUTH).exists():
        return _from_truth(
            folder / TRUTH, paths
        ), f"radio as the bench played it ({TRUTH}): there are no records of what the modems told"
    hint = "hint: an export has them; of a rehearsal: tandem-server report DIR --records, while its database is there"
    raise ScenarioError(folder, None, f"neither records of {probe or 'a probe'} nor {TRUTH}: no radio", hint)


def _from_files(folder: Path, probe: str, start_ns: int, whole_s: float, paths: dict[str, Any]) -> dict[str, list[Row]]:
    end_ns = start_ns + int(whole_s * 1e9)
    found: dict[str, list[Row]] = defaultdict(list)
    for told in exported(folder, probe, "radio", RADIO, start_ns, end_ns):
        if (name := told.get("path")) in paths and told.get("state") not in _UNHEARD:
            served = (told.get("state") or "unknown") in _SERVED
            found[name].append(_row((told["utc_ns"] - start_ns) / 1e9, told, served))
    fixes = exported(folder, probe, "position", ("speed_m_per_s",), start_ns, end_ns)
    speeds = [
        ((told["utc_ns"] - start_ns) / 1e9, speed)
        for told in fixes
        if (speed := _number(told.get("speed_m_per_s"))) is not None
    ]
    return {name: _with_speed(rows, speeds) for name, rows in found.items()}


def _from_truth(file: Path, paths: dict[str, Any]) -> dict[str, list[Row]]:
    """As a poll once a second would have found it: every tenth tick."""
    by_operator = {told.get("operator"): name for name, told in paths.items() if isinstance(told, dict)}
    rows: dict[str, list[Row]] = defaultdict(list)
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise ScenarioError(file, None, f"cannot be read: {error.strerror}", "give a readable file") from None
    for number, line in enumerate(lines, start=1):
        if '"radio"' not in line:
            continue
        try:
            told = json.loads(line)
            t_s, name = float(told["t_s"]), by_operator.get(told.get("operator"))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise ScenarioError(file, number, "no truth line", "remove the line") from None
        if told.get("type") == "radio" and name is not None and abs(t_s - round(t_s)) < 0.05 and t_s >= 0:
            row = _row(t_s, told, told.get("rat") is not None)
            rows[name].append(replace(row, speed_m_s=_number(told.get("speed_m_s"))))
    return rows


def _row(t_s: float, told: dict[str, Any], served: bool) -> Row:
    """Without service there is no technology, which is an outage."""
    tac, eci, rat = _number(told.get("tac")), _number(told.get("eci")), told.get("rat")
    known = rat if rat in ("LTE", "NR-NSA", "WCDMA", "GSM") else "LTE"
    return Row(
        t_s=t_s,
        speed_m_s=None,
        rat=known if served else None,
        rsrp_dbm=_number(told.get("rsrp_dbm")),
        rsrq_db=_number(told.get("rsrq_db")),
        sinr_db=_number(told.get("sinr_db")),
        rssi_dbm=_number(told.get("rssi_dbm")),
        tac=None if tac is None else int(tac),
        cell=None if eci is None else int(eci),
        down_bit_per_s=None,
        up_bit_per_s=None,
        rtt_ms=None,
    )


def _with_speed(rows: Sequence[Row], speeds: Sequence[tuple[float, float]]) -> list[Row]:
    """Each row with the speed nearest in time within a second."""
    found: list[Row] = []
    at = 0
    for row in rows:
        while at + 1 < len(speeds) and abs(speeds[at + 1][0] - row.t_s) <= abs(speeds[at][0] - row.t_s):
            at += 1
        near = bool(speeds) and abs(speeds[at][0] - row.t_s) <= 1.0
        found.append(replace(row, speed_m_s=speeds[at][1]) if near else row)
    return found


# --- runs ----------------------------------------------------------------------------------------------------------------


def runs(manifests: Sequence[dict[str, Any]], start_ns: int) -> dict[str, list[Got]]:
    """By path, what single-path runs got. While an MPTCP run of the same pair shared the path, its subflow's part is added."""
    spans: dict[str, list[Got]] = defaultdict(list)
    shared: dict[tuple[Any, str], float] = defaultdict(float)
    whole = []
    for told in manifests:
        result = told.get("result")
        begin, end = told.get("started_utc_ns"), told.get("ended_utc_ns")
        if not isinstance(result, dict) or type(begin) is not int or type(end) is not int or end <= begin:
            continue  # it failed, or the clock was not set: it says nothing here
        whole.append((told, result, (begin - start_ns) / 1e9, (end - start_ns) / 1e9))
        if told.get("kind") == "mptcp" and told.get("pairing") == "simultaneous":
            for subflow in _listed(result.get("subflows")):
                size, long_s = _number(subflow.get("bytes")), _number(result.get("duration_s"))
                if size is not None and long_s and isinstance(subflow.get("path"), str):
                    shared[told.get("pair"), subflow["path"]] += 8 * size / long_s
    for told, result, begin_s, end_s in whole:
        rate = _number(result.get("goodput_bit_per_s"))
        names = told.get("paths")
        if told.get("kind") != "tcp" or not rate or not isinstance(names, list) or len(names) != 1:
            continue
        rate += shared.get((told.get("pair"), names[0]), 0.0) if told.get("pairing") == "simultaneous" else 0.0
        hands = [_number(subflow.get("handshake_rtt_ms")) for subflow in _listed(result.get("subflows"))]
        spans[names[0]].append(Got(begin_s, end_s, rate, next((h for h in hands if h), None)))
    return {name: sorted(found, key=lambda one: one.begin_s) for name, found in spans.items()}


def repeats(
    manifests: Sequence[dict[str, Any]], start_ns: int, length_s: float, letters: Mapping[str, str]
) -> tuple[tuple[Repeat, ...], int]:
    """What a replay asks for and when, in order of time: a pair of downloads, or one; and how many runs of the time are not among them.
    ``letters``: of the paths that are played."""
    pairs: dict[str, list[dict[str, Any]]] = defaultdict(list)
    left_out = 0
    for told in manifests:
        begin = told.get("started_utc_ns")
        if type(begin) is not int or not 0 <= (begin - start_ns) / 1e9 < length_s:
            continue
        names = told.get("paths")
        if told.get("kind") in ("mptcp", "tcp") and isinstance(names, list) and set(names) <= set(letters):
            pairs[str(told.get("pair"))].append(told)
        else:
            left_out += 1
    found = []
    for members in pairs.values():
        first = min(members, key=lambda one: int(one["started_utc_ns"]))
        parameters = first.get("parameters")
        parameters = parameters if isinstance(parameters, dict) else {}
        size, long_s = _number(parameters.get("bytes")), _number(parameters.get("seconds"))
        pairing, kind = str(first.get("pairing")), str(first["kind"])
        paired = pairing in ("sequential", "simultaneous") and len(members) > 1
        primary = parameters.get("path")
        found.append(
            Repeat(
                t_s=(int(first["started_utc_ns"]) - start_ns) / 1e9,
                pairing=pairing if paired else None,
                kind=kind,
                path=letters.get(first["paths"][0]) if kind == "tcp" else letters.get(str(primary)),
                bytes=None if size is None else int(size),
                seconds=long_s,
            )
        )
    return tuple(sorted(found, key=lambda one: one.t_s)), left_out


def _with_rates(rows: Sequence[Row], spans: Sequence[Got]) -> list[Row]:
    """Rates and round trips on the rows that lie in a run."""
    found = []
    for row in rows:
        inside = [span for span in spans if span.begin_s <= row.t_s <= span.end_s]
        if inside:
            best = max(inside, key=lambda one: one.bit_per_s)
            row = replace(row, down_bit_per_s=best.bit_per_s, rtt_ms=best.rtt_ms)
        found.append(row)
    return found


def _covered(spans: Sequence[Got], whole_s: float) -> float:
    covered, until = 0.0, 0.0
    for span in spans:
        begin, end = max(until, span.begin_s), min(whole_s, span.end_s)
        if end > begin:
            covered, until = covered + end - begin, end
    return covered


# --- files ---------------------------------------------------------------------------------------------------------------


def _json(file: Path) -> dict[str, Any]:
    try:
        told = json.loads(file.read_bytes())
    except OSError as error:
        raise ScenarioError(file, None, f"cannot be read: {error.strerror}", "give a campaign's folder") from None
    except (ValueError, RecursionError):
        raise ScenarioError(file, 1, "not JSON", "give a campaign's folder as it was written") from None
    if not isinstance(told, dict):
        raise ScenarioError(file, 1, "no JSON object", "give a campaign's folder as it was written")
    return told


def _listed(value: object) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)
