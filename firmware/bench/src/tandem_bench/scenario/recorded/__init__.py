"""What was recorded, played as scenarios: drives, finished campaigns, packet-delivery traces."""

from tandem_bench.scenario.recorded.campaign import from_run
from tandem_bench.scenario.recorded.replay import replay
from tandem_bench.scenario.recorded.traces import with_traces

__all__ = ["from_run", "replay", "with_traces"]
