"""What a scenario file says, and how it is read, strictly. Defaults and ranges of every key are here and nowhere else."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

from tandem_bench.scenario.propagation import RESOURCE_BLOCKS, band_of
from tandem_bench.scenario.toml_table import ScenarioError, Table

TICK_S = 0.1
"""Everything is computed and written ten times a second."""
FORMAT = "tandem-scenario/1"
SHORTEST_S, LONGEST_S = 10.0, 7200.0
ACTIVITIES = ("still", "walk", "tram", "drive", "train", "cycle")
_ACCELERATION = {"still": 1.0, "walk": 1.0, "cycle": 0.8, "tram": 1.1, "train": 0.8, "drive": 2.0}


def _number(default: float | None, low: float, high: float) -> Any:  # noqa: ANN401 - a field of whatever class
    """A key that is a number from ``low`` to ``high``; ``default`` None: required."""
    return field(metadata={"read": lambda table, key: table.number(key, default, low, high)})


def _optional(low: float, high: float) -> Any:  # noqa: ANN401
    """A number, or None where the key is absent."""
    return field(metadata={"read": lambda table, key: table.number(key, 0.0, low, high) if key in table else None})


@dataclass(frozen=True, slots=True)
class Phase:
    """One part of the route. ``share`` of the duration; ``loss_db``: wall or vehicle between street and antenna."""

    name: str
    activity: str
    speed_m_s: float
    acceleration_m_s2: float
    share: float = _number(None, 0.001, 1000)
    heading_deg: float | None = _optional(-360, 360)
    radius_m: float = _number(0.0, -1e6, 1e6)
    stop_every_s: float = _number(0.0, 0, 3600)
    stop_s: float = _number(8.0, 0.1, 600)
    loss_db: float = _number(0.0, 0, 40)


@dataclass(frozen=True, slots=True)
class RadioModel:
    """Propagation and measurement; all in dB, metres and hertz, see the scenario files for the meaning of each."""

    path_loss: str
    shadowing_db: float = _number(7.5, 0, 15)
    shadowing_m: float = _number(110.0, 1, 1000)
    site_correlation: float = _number(0.5, 0, 1)
    street_db: float = _number(0.5, 0, 15)
    street_m: float = _number(3.5, 0.5, 1000)
    street_correlation: float = _number(0.85, 0, 1)
    operator_correlation: float = _number(0.5, 0, 1)
    residual_still_db: float = _number(0.6, 0, 6)
    residual_moving_db: float = _number(1.2, 0, 10)
    filter_k: float = _number(4.0, 0, 19)
    report_s: float = _number(2.0, 0.1, 60)
    noise_figure_db: float = _number(7.0, 0, 20)


@dataclass(frozen=True, slots=True)
class HandoverModel:
    """Event A3, interruption, radio link failure."""

    offset_db: float = _number(1.0, -15, 15)
    hysteresis_db: float = _number(1.5, 0, 15)
    time_to_trigger_ms: float = _number(320.0, 0, 5120)
    interruption_ms: float = _number(50.0, 0, 1000)
    interruption_spread: float = _number(0.3, 0, 2)
    long_share: float = _number(0.05, 0, 1)
    long_share_at_speed: float = _number(0.15, 0, 1)
    long_interruption_ms: float = _number(400.0, 0, 10000)
    drop_queue_share: float = _number(0.2, 0, 1)
    failure_sinr_db: float = _number(-10.0, -30, 10)
    failure_s: float = _number(1.0, 0.1, 10)
    reestablishment_s: float = _number(0.8, 0.1, 10)


@dataclass(frozen=True, slots=True)
class Carrier:
    """A downlink channel. ``share`` of the generated sites that use it."""

    earfcn: int
    bandwidth_mhz: float
    share: float = _number(1.0, 0.001, 1000)


@dataclass(frozen=True, slots=True)
class SitePlan:
    """A site written in the file. ``start_shadowing_db`` and ``load`` None: drawn."""

    azimuths_deg: tuple[float, ...]
    earfcn: int
    enb_id: int | None
    x_m: float = _number(None, -1e6, 1e6)
    y_m: float = _number(None, -1e6, 1e6)
    start_shadowing_db: float | None = _optional(-30, 30)
    load: float | None = _optional(0, 0.95)


@dataclass(frozen=True, slots=True)
class Operator:
    """One network: identity, cells, and what its core adds to a path."""

    name: str
    plmn: str
    carriers: tuple[Carrier, ...]
    sites: tuple[SitePlan, ...]
    first_enb_id: int
    first_tac: int
    start_down_mbit_s: tuple[float, float] | None
    spacing_m: float = _number(500.0, 100, 5000)
    clear_m: float = _number(250.0, 0, 5000)
    tac_m: float = _number(3000.0, 100, 1e6)
    power_dbm: float = _number(46.0, 0, 60)
    load: float = _number(0.5, 0, 0.95)
    load_spread: float = _number(0.15, 0, 0.5)
    load_variation: float = _number(0.03, 0, 0.3)
    cap_down_mbit_s: float = _number(150.0, 0.1, 1000)
    cap_up_mbit_s: float = _number(50.0, 0.1, 1000)
    rtt_ms: float = _number(54.0, 1, 2000)
    rtt_variation_ms: float = _number(3.0, 0, 500)
    buffer_s: float = _number(0.6, 0.01, 30)
    loss: float = _number(1e-6, 0, 0.5)


@dataclass(frozen=True, slots=True)
class Scenario:
    """A whole scenario with its two parameters, ready to be played."""

    name: str
    description: str
    duration_s: float
    seed: int
    phases: tuple[Phase, ...]
    radio: RadioModel
    handover: HandoverModel
    operators: tuple[Operator, ...]


# --- files -----------------------------------------------------------------------------------------------------------


def names() -> list[str]:
    """The scenarios that come with the bench."""
    folder = resources.files("tandem_bench.scenario") / "scenarios"
    return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))


def load(name_or_path: str | Path, duration_s: float | None = None, seed: int | None = None) -> Scenario:
    """Read a scenario by name or from a file. ``duration_s`` (10 to 7200) and ``seed`` stand in for the file's own.

    ScenarioError when it is unknown, unreadable or wrong in any key.
    """
    where, text = _text(name_or_path)
    scenario = _scenario(Table.of(where, text), Path(where).stem)
    if duration_s is not None and not SHORTEST_S <= duration_s <= LONGEST_S:
        raise ScenarioError(where, None, f"a duration of {duration_s:g} s", f"give {SHORTEST_S:g} to {LONGEST_S:g} s")
    if seed is not None and not 0 <= seed < 2**63:
        raise ScenarioError(where, None, f"the seed {seed}", "give a whole number from 0")
    return replace(
        scenario,
        duration_s=scenario.duration_s if duration_s is None else float(duration_s),
        seed=scenario.seed if seed is None else seed,
    )


def source(name_or_path: str | Path) -> str:
    """The text of a scenario's file, as it is. ScenarioError when there is none."""
    return _text(name_or_path)[1]


def _text(name_or_path: str | Path) -> tuple[str, str]:
    name = str(name_or_path)
    if name in names():
        entry = resources.files("tandem_bench.scenario") / "scenarios" / f"{name}.toml"
        return f"{name}.toml", entry.read_text(encoding="utf-8")
    path = Path(name)
    if not path.exists():
        raise ScenarioError(name, None, "no such scenario", f"give a file, or one of: {', '.join(names())}")
    try:
        return str(path), path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ScenarioError(path, 1, "not UTF-8 text", "give a scenario in TOML") from None
    except (OSError, ValueError) as error:
        raise ScenarioError(path, None, f"cannot be read: {error}", "give a readable file") from None


def _scenario(top: Table, stem: str) -> Scenario:
    top.text("format", None, FORMAT, f'write format = "{FORMAT}"')
    name = top.text(
        "name", stem or "scenario", r"[A-Za-z0-9][A-Za-z0-9._ -]{0,63}", "letters, digits, . _ -, at most 64"
    )
    description = top.text("description", "", r"[^\n]{0,300}", "one line of at most 300 characters")
    duration_s = top.number("duration_s", 180.0, SHORTEST_S, LONGEST_S)
    seed = top.whole("seed", 1, 0, 2**63 - 1)
    # The scenario of the bench whose radio, handover and operators hold where this file writes none.
    like = load(top.choice("like", None, names())) if "like" in top else None
    phases = tuple(_phase(table) for table in top.tables("phase"))
    if not 1 <= len(phases) <= 50:
        raise top.error("phase", f"{len(phases)} phases", "write 1 to 50 tables [[phase]]")
    radio = like.radio if like and "radio" not in top else _radio(top.table("radio"))
    handover = like.handover if like and "handover" not in top else _read(HandoverModel, top.table("handover"))
    tables = top.tables("operator")
    operators = like.operators if like else ()
    if tables or not like:
        if len(tables) != 2:
            raise top.error("operator", f"{len(tables)} operators", "write two tables [[operator]]")
        operators = tuple(_operator(table, i) for i, table in enumerate(tables))
        if operators[0].name == operators[1].name:
            raise tables[1].error("name", f"{operators[1].name!r} twice", "give the operators different names")
    top.end()
    return Scenario(name, description, duration_s, seed, phases, radio, handover, operators)


T = TypeVar("T")


def _read(kind: type[T], table: Table, **told: object) -> T:
    """One of the classes above: what is ``told``, and the other keys from ``table``, which then has no more."""
    own = {f.name: f.metadata["read"](table, f.name) for f in fields(kind) if "read" in f.metadata}  # type: ignore[arg-type]
    table.end()
    return kind(**told, **own)


def _phase(t: Table) -> Phase:
    activity = t.choice("activity", None, ACTIVITIES)
    still = activity == "still"
    phase = _read(
        Phase,
        t,
        name=t.text("name", activity, r"[^\n\"]{1,64}", "one line of at most 64 characters"),
        activity=activity,
        speed_m_s=t.number("speed_m_s", 0.0 if still else None, 0, 100),
        acceleration_m_s2=t.number("acceleration_m_s2", _ACCELERATION[activity], 0.1, 10),
    )
    if still and phase.speed_m_s:
        raise t.error("speed_m_s", "a still phase that moves", "set it to 0 or change the activity")
    if not still and phase.speed_m_s < 0.5:
        raise t.error("speed_m_s", f"{phase.speed_m_s} m/s is not moving", "give 0.5 or more, or activity still")
    if 0 < abs(phase.radius_m) < 5:
        raise t.error("radius_m", "a curve too tight", "give 5 m or more (negative: to the left), or 0 for straight on")
    if phase.stop_every_s and phase.stop_every_s < 2 * phase.stop_s:
        raise t.error("stop_every_s", "more stopping than going", "give at least twice stop_s, or 0 for no stops")
    return phase


def _radio(t: Table) -> RadioModel:
    path_loss = t.text("path_loss", "uma", "uma|umi", "use uma (masts above the roofs) or umi (below)")
    return _read(RadioModel, t, path_loss=path_loss)


def _operator(t: Table, index: int) -> Operator:
    name = t.text("name", None, r"[A-Za-z0-9][A-Za-z0-9_-]{0,15}", "letters, digits, _ and -, at most 16")
    plmn = t.text("plmn", f"0010{index + 1}", r"[0-9]{5,6}", "five or six digits in quotes: MCC and MNC")
    carriers = tuple(_carrier(table) for table in t.tables("carrier"))
    if not carriers:
        raise t.error(None, "no carrier", "add a table [[operator.carrier]]")
    sites = tuple(_site(table, carriers) for table in t.tables("site"))
    span = t.numbers("start_down_mbit_s", (), 0.1, 1000, range(3))
    if len(span) == 1 or (span and span[0] > span[1]):
        raise t.error("start_down_mbit_s", f"{span} is no span", "give two numbers, the smaller first")
    return _read(
        Operator,
        t,
        name=name,
        plmn=plmn,
        carriers=carriers,
        sites=sites,
        first_enb_id=t.whole("first_enb_id", 1000 + 50000 * index, 1, 2**20 - 10001),
        first_tac=t.whole("first_tac", 100 + 1000 * index, 1, 60000),
        start_down_mbit_s=(span[0], span[1]) if span else None,
    )


def _carrier(t: Table) -> Carrier:
    earfcn = t.whole("earfcn", None, 0, 65535)
    if band_of(earfcn) is None:
        raise t.error(
            "earfcn", f"{earfcn} is in no known band", "give a downlink channel, as 1300 (band 3) or 6300 (band 20)"
        )
    bandwidth = t.number("bandwidth_mhz", 20.0, 1.4, 20)
    if bandwidth not in RESOURCE_BLOCKS:
        known = ", ".join(f"{b:g}" for b in RESOURCE_BLOCKS)
        raise t.error("bandwidth_mhz", f"LTE has no {bandwidth:g} MHz", f"use one of: {known}")
    return _read(Carrier, t, earfcn=earfcn, bandwidth_mhz=bandwidth)


def _site(t: Table, carriers: tuple[Carrier, ...]) -> SitePlan:
    known = {c.earfcn for c in carriers}
    earfcn = t.whole("earfcn", carriers[0].earfcn, 0, 65535)
    if earfcn not in known:
        hint = f"use one of the operator's carriers: {', '.join(map(str, sorted(known)))}"
        raise t.error("earfcn", f"{earfcn} is not a carrier of this operator", hint)
    return _read(
        SitePlan,
        t,
        azimuths_deg=tuple(t.numbers("azimuths_deg", (0.0, 120.0, 240.0), -360, 360, range(1, 7))),
        earfcn=earfcn,
        enb_id=t.whole("enb_id", 0, 1, 2**20 - 1) if "enb_id" in t else None,
    )
