"""Recorded drives played as scenarios."""

from tandem_bench.scenario.recorded.replay import replay

__all__ = ["replay"]
