"""Scenarios: commutes computed from a TOML file, a seed and a duration, or replayed from two recorded drives or a campaign."""

from tandem_bench.scenario.model import TICK_S, Scenario, load, names, source
from tandem_bench.scenario.play import play
from tandem_bench.scenario.played import Played, Timeline, repeated, write_timelines
from tandem_bench.scenario.recorded import from_run, replay, with_traces
from tandem_bench.scenario.toml_table import ScenarioError

__all__ = [
    "TICK_S",
    "Played",
    "Scenario",
    "ScenarioError",
    "Timeline",
    "from_run",
    "load",
    "names",
    "play",
    "repeated",
    "replay",
    "source",
    "with_traces",
    "write_timelines",
]
