"""Scenario files: found by name or path, read strictly. Defaults and ranges of every key are here and nowhere else."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from tandem_bench.scenario.bands import RESOURCE_BLOCKS, band_of
from tandem_bench.scenario.errors import ScenarioError
from tandem_bench.scenario.model import Carrier, HandoverModel, Operator, Phase, RadioModel, Scenario, SitePlan
from tandem_bench.scenario.toml_table import Table, lines_of, parse

FORMAT = "tandem-scenario/1"
SHORTEST_S, LONGEST_S = 10.0, 7200.0
ACTIVITIES = ("still", "walk", "tram", "drive", "train", "cycle")

_ACCELERATION = {"still": 1.0, "walk": 1.0, "cycle": 0.8, "tram": 1.1, "train": 0.8, "drive": 2.0}


def names() -> list[str]:
    """The scenarios that come with the bench."""
    folder = resources.files("tandem_bench.scenario") / "scenarios"
    return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))


def load(name_or_path: str | Path, duration_s: float | None = None, seed: int | None = None) -> Scenario:
    """Read a scenario by name or from a file. ``duration_s`` (10 to 7200) and ``seed`` stand in for the file's own.

    ScenarioError when it is unknown, unreadable or wrong in any key.
    """
    where, text = _text(name_or_path)
    top = Table(where, lines_of(text), (), parse(where, text))
    scenario = _scenario(top, Path(where).stem)
    if duration_s is not None and not SHORTEST_S <= duration_s <= LONGEST_S:
        raise ScenarioError(where, None, f"a duration of {duration_s:g} s", f"give {SHORTEST_S:g} to {LONGEST_S:g} s")
    if seed is not None and not 0 <= seed < 2**63:
        raise ScenarioError(where, None, f"the seed {seed}", "give a whole number from 0")
    return Scenario(
        scenario.name,
        scenario.description,
        scenario.duration_s if duration_s is None else float(duration_s),
        scenario.seed if seed is None else seed,
        scenario.phases,
        scenario.radio,
        scenario.handover,
        scenario.operators,
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
    like = load(_like(top)) if "like" in top else None
    phases = tuple(_phase(table) for table in top.tables("phase"))
    if not 1 <= len(phases) <= 50:
        raise top.error("phase", f"{len(phases)} phases", "write 1 to 50 tables [[phase]]")
    radio = like.radio if like and "radio" not in top else _radio(top.table("radio"))
    handover = like.handover if like and "handover" not in top else _handover(top.table("handover"))
    tables = top.tables("operator")
    if like and not tables:
        top.end()
        return Scenario(name, description, duration_s, seed, phases, radio, handover, like.operators)
    if len(tables) != 2:
        raise top.error("operator", f"{len(tables)} operators", "write two tables [[operator]]")
    operators = tuple(_operator(table, i) for i, table in enumerate(tables))
    if operators[0].name == operators[1].name:
        raise tables[1].error("name", f"{operators[1].name!r} twice", "give the operators different names")
    top.end()
    return Scenario(name, description, duration_s, seed, phases, radio, handover, operators)


def _like(top: Table) -> str:
    """The scenario of the bench whose radio, handover and operators hold where this file writes none."""
    known = names()
    return top.text("like", None, "|".join(known), f"use one of: {', '.join(known)}")


def _phase(t: Table) -> Phase:
    activity = t.text("activity", None, "|".join(ACTIVITIES), f"use one of: {', '.join(ACTIVITIES)}")
    still = activity == "still"
    phase = Phase(
        name=t.text("name", activity, r"[^\n\"]{1,64}", "one line of at most 64 characters"),
        activity=activity,
        share=t.number("share", None, 0.001, 1000),
        speed_m_s=t.number("speed_m_s", 0.0 if still else None, 0, 100),
        acceleration_m_s2=t.number("acceleration_m_s2", _ACCELERATION[activity], 0.1, 10),
        heading_deg=t.number("heading_deg", 0.0, -360, 360) if "heading_deg" in t else None,
        radius_m=t.number("radius_m", 0.0, -1e6, 1e6),
        stop_every_s=t.number("stop_every_s", 0.0, 0, 3600),
        stop_s=t.number("stop_s", 8.0, 0.1, 600),
        loss_db=t.number("loss_db", 0.0, 0, 40),
    )
    if still and phase.speed_m_s:
        raise t.error("speed_m_s", "a still phase that moves", "set it to 0 or change the activity")
    if not still and phase.speed_m_s < 0.5:
        raise t.error("speed_m_s", f"{phase.speed_m_s} m/s is not moving", "give 0.5 or more, or activity still")
    if 0 < abs(phase.radius_m) < 5:
        raise t.error("radius_m", "a curve too tight", "give 5 m or more (negative: to the left), or 0 for straight on")
    if phase.stop_every_s and phase.stop_every_s < 2 * phase.stop_s:
        raise t.error("stop_every_s", "more stopping than going", "give at least twice stop_s, or 0 for no stops")
    t.end()
    return phase


def _radio(t: Table) -> RadioModel:
    model = RadioModel(
        path_loss=t.text("path_loss", "uma", "uma|umi", "use uma (masts above the roofs) or umi (below)"),
        shadowing_db=t.number("shadowing_db", 7.5, 0, 15),
        shadowing_m=t.number("shadowing_m", 110.0, 1, 1000),
        site_correlation=t.number("site_correlation", 0.5, 0, 1),
        street_db=t.number("street_db", 0.5, 0, 15),
        street_m=t.number("street_m", 3.5, 0.5, 1000),
        street_correlation=t.number("street_correlation", 0.85, 0, 1),
        operator_correlation=t.number("operator_correlation", 0.5, 0, 1),
        residual_still_db=t.number("residual_still_db", 0.6, 0, 6),
        residual_moving_db=t.number("residual_moving_db", 1.2, 0, 10),
        filter_k=t.number("filter_k", 4.0, 0, 19),
        report_s=t.number("report_s", 2.0, 0.1, 60),
        noise_figure_db=t.number("noise_figure_db", 7.0, 0, 20),
    )
    t.end()
    return model


def _handover(t: Table) -> HandoverModel:
    model = HandoverModel(
        offset_db=t.number("offset_db", 1.0, -15, 15),
        hysteresis_db=t.number("hysteresis_db", 1.5, 0, 15),
        time_to_trigger_ms=t.number("time_to_trigger_ms", 320.0, 0, 5120),
        interruption_ms=t.number("interruption_ms", 50.0, 0, 1000),
        interruption_spread=t.number("interruption_spread", 0.3, 0, 2),
        long_share=t.number("long_share", 0.05, 0, 1),
        long_share_at_speed=t.number("long_share_at_speed", 0.15, 0, 1),
        long_interruption_ms=t.number("long_interruption_ms", 400.0, 0, 10000),
        drop_queue_share=t.number("drop_queue_share", 0.2, 0, 1),
        failure_sinr_db=t.number("failure_sinr_db", -10.0, -30, 10),
        failure_s=t.number("failure_s", 1.0, 0.1, 10),
        reestablishment_s=t.number("reestablishment_s", 0.8, 0.1, 10),
    )
    t.end()
    return model


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
    operator = Operator(
        name=name,
        plmn=plmn,
        carriers=carriers,
        sites=sites,
        spacing_m=t.number("spacing_m", 500.0, 100, 5000),
        clear_m=t.number("clear_m", 250.0, 0, 5000),
        first_enb_id=t.whole("first_enb_id", 1000 + 50000 * index, 1, 2**20 - 10001),
        first_tac=t.whole("first_tac", 100 + 1000 * index, 1, 60000),
        tac_m=t.number("tac_m", 3000.0, 100, 1e6),
        power_dbm=t.number("power_dbm", 46.0, 0, 60),
        load=t.number("load", 0.5, 0, 0.95),
        load_spread=t.number("load_spread", 0.15, 0, 0.5),
        load_variation=t.number("load_variation", 0.03, 0, 0.3),
        start_down_mbit_s=(span[0], span[1]) if span else None,
        cap_down_mbit_s=t.number("cap_down_mbit_s", 150.0, 0.1, 1000),
        cap_up_mbit_s=t.number("cap_up_mbit_s", 50.0, 0.1, 1000),
        rtt_ms=t.number("rtt_ms", 54.0, 1, 2000),
        rtt_variation_ms=t.number("rtt_variation_ms", 3.0, 0, 500),
        buffer_s=t.number("buffer_s", 0.6, 0.01, 30),
        loss=t.number("loss", 1e-6, 0, 0.5),
    )
    t.end()
    return operator


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
    carrier = Carrier(earfcn, bandwidth, t.number("share", 1.0, 0.001, 1000))
    t.end()
    return carrier


def _site(t: Table, carriers: tuple[Carrier, ...]) -> SitePlan:
    known = {c.earfcn for c in carriers}
    earfcn = t.whole("earfcn", carriers[0].earfcn, 0, 65535)
    if earfcn not in known:
        mend = f"use one of the operator's carriers: {', '.join(map(str, sorted(known)))}"
        raise t.error("earfcn", f"{earfcn} is not a carrier of this operator", mend)
    site = SitePlan(
        x_m=t.number("x_m", None, -1e6, 1e6),
        y_m=t.number("y_m", None, -1e6, 1e6),
        azimuths_deg=tuple(t.numbers("azimuths_deg", (0.0, 120.0, 240.0), -360, 360, range(1, 7))),
        earfcn=earfcn,
        enb_id=t.whole("enb_id", 0, 1, 2**20 - 1) if "enb_id" in t else None,
        start_shadowing_db=t.number("start_shadowing_db", 0.0, -30, 30) if "start_shadowing_db" in t else None,
        load=t.number("load", 0.0, 0, 0.95) if "load" in t else None,
    )
    t.end()
    return site
