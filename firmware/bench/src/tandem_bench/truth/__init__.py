"""Ground truth: what the bench did, with times, to score detectors against."""

from tandem_bench.truth.writer import TruthError, write

__all__ = ["TruthError", "write"]
